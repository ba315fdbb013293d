// What does a layer of zeroplan's engine hold for its backward pass? Front door: zeroplan_layer.
#include "cost_model/program/zeroplan/unit.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t fp32 = 4;

class LayerWriter {
 public:
  LayerWriter(const LayerShape& shape, ZeroplanUnit unit)
      : s_(shape), unit_(unit), w_(shape.residual(), shape.residual()) {}

  Block write() {
    const bool full = s_.problem.layout.recompute == Recompute::full;
    unit_.begin_forward(w_);
    run();
    w_.allocate(Block::output);
    unit_.end_forward(w_);
    if (full) drop();
    w_.begin_backward();
    unit_.begin_backward(w_);
    if (full) {
      run();
      w_.free(w_.temporary("recomputed output", s_.residual()));
    }
    mlp_backward();
    attention_backward();
    unit_.end_backward(w_);
    return w_.finish();
  }

 private:
  Bytes up() const { return s_.features((s_.problem.model.mlp.gated ? 2 : 1) * s_.token.mlp); }
  Bytes qkv() const { return s_.features(s_.token.query + 2 * s_.token.key_value); }

  // Up to the last linear, whose output stands apart.
  void run() {
    norm1_ = w_.save("attention norm", s_.residual());
    statistics1_ = w_.save("norm statistics", s_.norm_statistics());
    qkv_ = w_.save("queries, keys and values", qkv());
    attention_ = w_.save("attention", s_.features(s_.token.output));
    log_sums_ = w_.save("log of sums of attention", Bytes{fp32 * s_.token.heads * s_.tokens});
    middle_ = w_.save("residual after attention", s_.residual());
    norm2_ = w_.save("mlp norm", s_.residual());
    statistics2_ = w_.save("norm statistics", s_.norm_statistics());
    up_ = w_.save("up projection", up());
    activated_ = w_.save("activation", s_.features(s_.token.mlp));
  }

  void drop() {
    for (const Tensor saved : {norm1_, statistics1_, qkv_, attention_, log_sums_, middle_, norm2_,
                               statistics2_, up_, activated_}) {
      w_.free(saved);
    }
  }

  void mlp_backward() {
    const Tensor dactivated = w_.temporary("activation gradient", s_.features(s_.token.mlp));
    w_.free(activated_);
    const Tensor dup = w_.temporary("up projection gradient", up());
    w_.free(dactivated);
    w_.free(up_);
    const Tensor dnorm = w_.temporary("norm output gradient", s_.residual());
    w_.free(dup);
    w_.free(norm2_);
    dmiddle_ = w_.temporary("residual gradient", s_.residual());
    w_.free(dnorm);
    w_.free(middle_);
    w_.free(statistics2_);
    w_.free(Block::output_grad);
  }

  void attention_backward() {
    const Tensor dattention = w_.temporary("attention gradient", s_.features(s_.token.output));
    const Tensor dqkv = w_.temporary("qkv gradient", qkv());
    for (const Tensor done : {dattention, attention_, log_sums_, qkv_}) w_.free(done);
    const Tensor dnorm = w_.temporary("norm output gradient", s_.residual());
    w_.free(dqkv);
    w_.free(norm1_);
    w_.allocate(Block::input_grad);
    for (const Tensor done : {dnorm, dmiddle_, statistics1_}) w_.free(done);
    w_.free(Block::input);
  }

  const LayerShape& s_;
  ZeroplanUnit unit_;
  BlockWriter w_;
  Tensor norm1_{}, statistics1_{}, qkv_{}, attention_{}, log_sums_{};
  Tensor middle_{}, norm2_{}, statistics2_{}, up_{}, activated_{};
  Tensor dmiddle_{};
};

}  // namespace

Block zeroplan_layer(const LayerShape& shape, ZeroplanUnit unit) {
  return LayerWriter(shape, unit).write();
}

}  // namespace zeroplan
