// What do experts allocate of which each works on all tokens? Front door: write_repeated_experts.
//
// Tokens are copied once for each expert and multiplied with its scores, which are zero where it
// was not chosen; two batched products make an MLP of them, and a sum over the experts is added to
// what the shared expert gave. Source: huggingface/transformers v5.24.0
// models/llama4/modeling_llama4.py Llama4Router, Llama4TextExperts, Llama4TextMoe.
#include "cost_model/runtime/pytorch_layers/experts.hpp"

namespace zeroplan {
namespace {

// A copy of each token for each expert, as the residual stream's norm gave it.
Bytes copies(const EagerShape& s, const MlpShape& routed) {
  const std::int64_t element = s.style.autocast ? wide_element : s.token.element;
  return Bytes{element * routed.rows * s.token.hidden};
}

}  // namespace

Tensor write_repeated_experts(EagerPass& pass, const EagerShape& s, EagerFeedForward& t) {
  BlockWriter& w = pass.writer();
  const MlpShape routed = routed_mlp(s);
  const MoeSpec& moe = *s.problem.model.moe;
  w.run({Module::router, Module::permute});
  // Sigmoids, and the scores that weigh each copy; the places of those chosen, int64.
  t.routing = {pass.make("router scores", Bytes{(wide_element + s.token.element) * routed.rows}),
               pass.make("chosen experts", Bytes{8 * moe.experts_per_token * s.tokens})};
  t.weighed = pass.make("repeated tokens", copies(s, routed));
  // The function's variable holds what autocast narrows.
  const Tensor wide =
      w.temporary("weighed tokens in fp32", s.style.autocast ? copies(s, routed) : Bytes{});
  pass.done(t.weighed);
  t.permuted = pass.make("expert input", routed.hidden(s));
  const Tensor output = write_mlp(pass, s, routed, t.mlp);
  const Tensor shared = write_mlp(pass, s, shared_mlp(s), t.shared);
  w.run(Module::shared_sum);
  w.free(w.temporary("sum of experts", s.features(s.token.hidden)));
  for (const Tensor tensor : {output, wide}) w.free(tensor);
  pass.done(t.permuted);
  return shared;
}

Tensor write_repeated_experts_backward(BlockWriter& w,
                                       const EagerShape& s,
                                       const EagerFeedForward& t,
                                       const OnGradient& on_gradient) {
  const MlpShape routed = routed_mlp(s);
  w.run_backward(Module::shared_sum);
  const Tensor output = w.temporary("expert output gradient", routed.hidden(s));
  const Tensor shared = write_mlp_backward(w, s, shared_mlp(s), t.shared, on_gradient);
  const Tensor narrow = write_mlp_backward(w, s, routed, t.mlp, on_gradient, t.permuted, output);
  w.run_backward(Module::permute);
  const Tensor weighed =
      w.temporary("weighed tokens gradient", s.style.autocast ? copies(s, routed) : Bytes{});
  if (s.style.autocast) w.free(narrow);
  const Tensor gradient = s.style.autocast ? weighed : narrow;
  const Tensor repeated = w.temporary("repeated tokens gradient", copies(s, routed));
  w.free(w.temporary("products for the gradient of scores", copies(s, routed)));
  for (const Tensor tensor : {gradient, t.weighed}) w.free(tensor);
  const Tensor input = w.temporary("expert layer input gradient", s.residual());
  w.free(repeated);
  w.free(shared);
  const Tensor sum = write_router_backward(w, s, t, on_gradient, input);
  w.free(t.input);
  return sum;
}

}  // namespace zeroplan
