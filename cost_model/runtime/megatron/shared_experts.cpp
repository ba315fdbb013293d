// What do the shared experts of a Megatron layer allocate? Front doors: write_shared_experts,
// write_shared_experts_backward.
#include "cost_model/runtime/megatron/layer.hpp"

namespace zeroplan {
namespace {

// Intermediate features on one rank.
std::int64_t width(const MegatronShape& s) {
  return ceil_div(s.problem.model.moe->shared_intermediate_size, s.problem.layout.tp);
}

std::int64_t branches(const MegatronShape& s) {
  return s.problem.model.moe->gated ? 2 : 1;
}

// Gives the gradient of what the gate weighed; its part of the norm's gradient is added to the
// others'.
Tensor write_shared_gate_backward(BlockWriter& w,
                                  const MegatronShape& s,
                                  const FeedForwardTensors& t) {
  if (!s.problem.model.moe->shared_expert_gate) return BlockWriter::none;
  const Tensor by_feature = w.temporary("gate gradient by feature", s.residual());
  const Tensor output = w.temporary("shared expert output gradient", s.residual());
  w.free(by_feature);
  w.free(t.shared_gate);
  w.run_linear_backward(Module::shared_gate);
  const Tensor part = w.temporary("gate's part of the input gradient", s.residual());
  w.free(w.temporary("sum of input gradients", s.residual()));
  w.free(part);
  return output;
}

}  // namespace

Tensor write_shared_experts(BlockWriter& w, const MegatronShape& s, FeedForwardTensors& t) {
  if (width(s) == 0) return BlockWriter::none;
  const Tensor gathered = write_column_linear_input(w, s, s.token.hidden);
  t.shared_fc1 = w.save("shared expert fc1 output", s.features(branches(s) * width(s)));
  w.run(Module::shared_fc1);
  w.free(gathered);
  const Tensor made = t.shared_fc1;
  t.shared_fc1 = write_activation_input(w, s, made);
  t.shared_activation =
      w.save("shared expert activation output", s.linear_input(s.features(width(s))));
  w.run(Module::shared_activation);
  if (t.shared_fc1 != made) w.free(made);
  const bool gated = s.problem.model.moe->shared_expert_gate;
  const std::string_view name = "shared expert output";
  const Tensor output = write_row_linear_forward(
      w, s, Module::shared_fc2, name, gated ? Category::activations : Category::temporaries);
  if (!gated) return output;
  t.shared_gate = {output, w.save("gate of shared experts", s.rows(s.token.element))};
  w.run(Module::shared_gate);
  return w.temporary("gated shared expert output", s.residual());
}

void write_shared_experts_backward(BlockWriter& w,
                                   const MegatronShape& s,
                                   const FeedForwardTensors& t) {
  if (width(s) == 0) return w.free_with_weights(t.norm.output);
  const Tensor output = write_shared_gate_backward(w, s, t);
  const Tensor activation = write_row_linear_backward(
      w, s, Module::shared_fc2, "shared expert activation gradient", width(s));
  w.free_with_weights(output);
  w.free_with_weights(t.shared_activation);
  const Tensor read = widen_activation_input(w, s, t.shared_fc1);
  const Tensor fc1 =
      w.temporary("shared expert fc1 output gradient", s.features(branches(s) * width(s)));
  w.run_backward(Module::shared_activation);
  w.free(activation);
  w.free(read);
  w.free(t.shared_fc1);
  const Tensor input = write_column_linear_backward(w, s, Module::shared_fc1, t.norm.output,
                                                    s.token.hidden, branches(s) * width(s));
  free_with_weights(w, s, fc1);
  w.free(input);
}

}  // namespace zeroplan
