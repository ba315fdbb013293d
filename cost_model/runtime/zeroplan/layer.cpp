// What does a layer of zeroplan's engine hold for its backward pass? Front door: zeroplan_layer.
#include "cost_model/kernel/layer_modules.hpp"
#include "cost_model/runtime/zeroplan/unit.hpp"

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
    add_parts();
    unit_.end_forward(w_);
    if (full) drop();
    keep_checkpoint();
    w_.begin_backward();
    unit_.begin_backward(w_);
    rebuild_checkpoint();
    if (full) {
      run();
      const Tensor output = w_.temporary("recomputed output", s_.residual());
      add_parts();
      w_.free(output);
    }
    mlp_backward();
    attention_backward();
    unit_.end_backward(w_);
    return w_.finish();
  }

 private:
  // Under Pa and MD a copy stays instead of the input; MD's is resident.
  void keep_checkpoint() {
    if (!copies_checkpoints(s_.problem)) return;
    if (!s_.problem.runtime.zeroplan.contiguous_memory_optimization) {
      part_ = w_.save("part of the checkpoint", checkpoint_copy(s_));
    }
    w_.free(Block::input);
  }

  void rebuild_checkpoint() {
    if (!copies_checkpoints(s_.problem) || checkpoint_copy(s_) == s_.residual()) return;
    rebuilt_ = w_.temporary("rebuilt checkpoint", s_.residual());
    w_.call("tp", Collective::all_gather, s_.residual());
    w_.free(part_);
  }

  Bytes up() const { return s_.features((s_.problem.model.mlp.gated ? 2 : 1) * s_.token.mlp); }
  Bytes qkv() const { return s_.features(s_.token.query + 2 * s_.token.key_value); }

  // Up to the last linear's sum, whose output stands apart.
  void run() {
    norm1_ = w_.save("attention norm", s_.residual());
    statistics1_ = w_.save("norm statistics", s_.norm_statistics());
    qkv_ = w_.save("queries, keys and values", qkv());
    w_.free(gather("gathered norm output"));
    attention_ = w_.save("attention", s_.features(s_.token.output));
    log_sums_ = w_.save("log of sums of attention", Bytes{fp32 * s_.token.heads * s_.tokens});
    zeroplan::run(w_, modules_.attention);
    middle_ = w_.save("residual after attention", s_.residual());
    add_parts();
    norm2_ = w_.save("mlp norm", s_.residual());
    statistics2_ = w_.save("norm statistics", s_.norm_statistics());
    up_ = w_.save("up projection", up());
    w_.free(gather("gathered norm output"));
    activated_ = w_.save("activation", s_.features(s_.token.mlp));
    zeroplan::run(w_, modules_.feed_forward);
  }

  void drop() {
    for (const Tensor saved : {norm1_, statistics1_, qkv_, attention_, log_sums_, middle_, norm2_,
                               statistics2_, up_, activated_}) {
      w_.free(saved);
    }
  }

  void mlp_backward() {
    const ModelSpec& m = s_.problem.model;
    const Tensor whole = gather("gathered output gradient");
    const Tensor dactivated = w_.temporary("activation gradient", s_.features(s_.token.mlp));
    linear_gradient(m.mlp.bias, s_.token.hidden, s_.token.mlp);
    w_.free(whole);
    w_.free(activated_);
    const Tensor dup = w_.temporary("up projection gradient", up());
    w_.free(dactivated);
    w_.free(up_);
    const Tensor dnorm =
        column_gradient(m.mlp.bias, (m.mlp.gated ? 2 : 1) * s_.token.mlp, {dup, norm2_});
    dmiddle_ = w_.temporary("residual gradient", s_.residual());
    run_backward(w_, modules_.feed_forward);
    norm_gradient();
    w_.free(dnorm);
    w_.free(middle_);
    w_.free(statistics2_);
    w_.free(Block::output_grad);
  }

  void attention_backward() {
    const AttentionSpec& a = s_.problem.model.attention;
    const Tensor whole = gather("gathered output gradient");
    const Tensor dattention = w_.temporary("attention gradient", s_.features(s_.token.output));
    linear_gradient(a.output_bias, s_.token.hidden, s_.token.output);
    w_.free(whole);
    const Tensor dqkv = w_.temporary("qkv gradient", qkv());
    for (const Tensor done : {dattention, attention_, log_sums_, qkv_}) w_.free(done);
    const Tensor dnorm =
        column_gradient(a.qkv_bias, s_.token.query + 2 * s_.token.key_value, {dqkv, norm1_});
    w_.allocate(Block::input_grad);
    run_backward(w_, modules_.attention);
    norm_gradient();
    for (const Tensor done : {dnorm, dmiddle_, statistics1_}) w_.free(done);
    copies_checkpoints(s_.problem) ? w_.free(rebuilt_) : w_.free(Block::input);
  }

  // Over tensor parallelism: in place, or with sequence parallelism beside the rank's own rows.
  void add_parts() {
    const Tensor part = w_.temporary("part of a sum", s_.gathered());
    w_.call("tp", s_.sums(), s_.parts());
    w_.free(part);
  }

  // All rows; nothing where the rank has them.
  Tensor gather(std::string_view name) {
    w_.call("tp", Collective::all_gather, s_.gathered());
    return w_.temporary(name, s_.gathered());
  }

  // Behind a norm, whose output's gradient it gives; `read` is done with.
  Tensor column_gradient(bool biased, std::int64_t outputs, const TensorList& read) {
    const Tensor dnorm = w_.temporary("norm output gradient", s_.residual());
    const Tensor part = w_.temporary("part of a sum", s_.gathered());
    const Tensor whole = gather("gathered norm output");
    linear_gradient(biased, outputs, s_.token.hidden);
    w_.free(whole);
    w_.free(read);
    w_.call("tp", s_.sums(), s_.parts());
    w_.free(part);
    return dnorm;
  }

  // The gradients of a linear's bias, then of its weight, of so many elements.
  void linear_gradient(bool biased, std::int64_t outputs, std::int64_t inputs) {
    const std::int64_t element = s_.token.element;
    unit_.gradient(w_, Bytes{biased ? element * outputs : 0});
    unit_.gradient(w_, Bytes{element * outputs * inputs});
  }

  void norm_gradient() {
    const Bytes one{s_.token.element * s_.token.hidden};
    unit_.norm_gradient(w_, one, has_norm_bias(s_.problem.model) ? one : Bytes{});
  }

  const LayerShape& s_;
  ZeroplanUnit unit_;
  LayerModules modules_ = layer_modules(s_.problem, LayerKind::dense);
  BlockWriter w_;
  Tensor norm1_{}, statistics1_{}, qkv_{}, attention_{}, log_sums_{};
  Tensor middle_{}, norm2_{}, statistics2_{}, up_{}, activated_{};
  Tensor dmiddle_{};
  Tensor part_ = BlockWriter::none;
  Tensor rebuilt_ = BlockWriter::none;
};

}  // namespace

Block zeroplan_layer(const LayerShape& shape, ZeroplanUnit unit) {
  return LayerWriter(shape, unit).write();
}

}  // namespace zeroplan
