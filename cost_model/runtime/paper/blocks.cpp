// What does a block of the ZeRO paper keep and send? Front door: paper_layer.
#include "cost_model/runtime/paper/blocks.hpp"

#include "cost_model/kernel/layer_modules.hpp"

namespace zeroplan {
namespace {

using enum Collective;

// 12 elements a token and feature, of all tokens: sequence parallelism came later.
Bytes layer_activations(const LayerShape& s) {
  constexpr std::int64_t elements = 12;
  return s.features(elements * ceil_div(s.token.hidden, s.problem.layout.tp));
}

// The calls of a layer's passes.
class LayerCalls {
 public:
  LayerCalls(BlockWriter& w, const LayerShape& shape, LayerKind kind)
      : w_(w), s_(shape), kind_(kind) {}

  void forward() {
    attention_inputs([&](std::int64_t width) { input(width); });
    if (turns_apart()) w_.call("tp", all_gather, rotary_part());
    exchange_heads();
    output();
    if (has_experts(kind_)) experts();
    if (!has_mlp()) return;
    input(s_.token.hidden);
    output();
  }

  void backward() {
    if (has_mlp()) {
      output_gradient();
      input_gradient(s_.token.hidden);
    }
    if (has_experts(kind_)) experts();
    output_gradient();
    exchange_heads();
    if (turns_apart()) w_.call("tp", reduce_scatter, rotary_part());
    attention_inputs([&](std::int64_t width) { input_gradient(width); });
  }

 private:
  // Whether the layer has an MLP, that of a dense layer or of shared experts.
  bool has_mlp() const {
    return !has_experts(kind_) || s_.problem.model.moe->shared_intermediate_size > 0;
  }

  // Column-parallel linears that read so many features, then a row-parallel one.
  void input(std::int64_t width) {
    if (s_.sequence_parallel()) w_.call("tp", all_gather, s_.features(width));
  }
  void output() { w_.call("tp", s_.sums(), s_.parts()); }
  void output_gradient() { w_.call("tp", all_gather, s_.gathered()); }
  void input_gradient(std::int64_t width) {
    w_.call("tp", s_.sums(), s_.features(width));
    input(width);  // once more, for the weights
  }

  // Latent attention divides the up-projections, which read the latents; each rank has the whole
  // down-projections. The rotary part of the keys, which all heads share, is no linear's input.
  template <class Visit>
  void attention_inputs(const Visit& visit) {
    const auto& mla = s_.problem.model.attention.mla;
    if (!mla) return visit(s_.token.hidden);
    visit(mla->q_lora_rank > 0 ? mla->q_lora_rank : s_.token.hidden);
    visit(mla->kv_lora_rank);
  }
  bool turns_apart() const {
    return s_.problem.model.attention.mla.has_value() && s_.sequence_parallel();
  }
  Bytes rotary_part() const {
    return s_.features(s_.problem.model.attention.mla->qk_rope_head_dim);
  }

  // Exchanges heads, there and back: queries, keys and values; the output.
  void exchange_heads() {
    const bool latent = s_.problem.model.attention.mla.has_value();
    const std::int64_t values = latent ? s_.token.output : s_.token.key_value;
    w_.call("cp", all_to_all, s_.features(s_.token.query + s_.token.key_value + values));
    w_.call("cp", all_to_all, s_.features(s_.token.output));
  }

  // Dispatch and combine. Ranks that divide an expert gather each other's tokens and scatter the
  // sums, and the other way round with gradients.
  void experts() {
    const RoutedTokens routed = routed_tokens(s_.problem);
    const std::int64_t token = s_.token.element * s_.token.hidden;
    w_.call("ep", all_to_all, Bytes{token * routed.sent});
    w_.call("etp", all_gather, Bytes{token * routed.received});
    w_.call("etp", reduce_scatter, Bytes{token * routed.received});
    w_.call("ep", all_to_all, Bytes{token * routed.sent});
  }

  BlockWriter& w_;
  const LayerShape& s_;
  LayerKind kind_;
};

}  // namespace

Block paper_embedding(const LayerShape& s) {
  BlockWriter w;
  w.run(Module::embedding);
  w.call("tp", s.sums(), s.parts());
  w.begin_backward();
  w.call("tp", all_gather, s.gathered());
  w.run_backward(Module::embedding);
  return w.finish();
}

Block paper_layer(const LayerShape& s, LayerKind kind) {
  BlockWriter w;
  LayerCalls calls(w, s, kind);
  const auto [attention, feed_forward] = layer_modules(s.problem, kind);
  const auto write_forward = [&] {
    calls.forward();
    run(w, attention);
    run(w, feed_forward);
  };
  const bool checkpoints = s.problem.layout.recompute == Recompute::full;
  const Bytes all = layer_activations(s);
  write_forward();
  const Tensor kept =
      checkpoints ? w.save("layer input", s.residual()) : w.save("saved activations", all);
  w.begin_backward();
  if (checkpoints) write_forward();
  const Tensor again = w.save("recomputed activations", checkpoints ? all : Bytes{});
  calls.backward();
  run_backward(w, feed_forward);
  run_backward(w, attention);
  w.free_with_weights(again);
  w.free_with_weights(kept);
  return w.finish();
}

// A column-parallel linear; then the largest logit, the sum of exponentials and the target's.
Block paper_head(const LayerShape& s) {
  constexpr std::int64_t fp32 = 4;
  BlockWriter w;
  w.run(Module::final_norm);
  w.call("tp", all_gather, s.gathered());
  w.run({Module::output_layer, Module::loss});
  w.call("tp", all_reduce, Bytes{fp32 * s.tokens}, 3);
  w.begin_backward();
  w.run_backward(Module::loss);
  w.call("tp", all_gather, s.gathered());
  w.run_linear_backward(Module::output_layer);
  w.call("tp", s.sums(), s.parts());
  w.run_backward(Module::final_norm);
  return w.finish();
}

}  // namespace zeroplan
