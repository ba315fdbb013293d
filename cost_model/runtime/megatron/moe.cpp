// What do the experts of a Megatron layer allocate? Front door: write_moe_forward.
#include "cost_model/runtime/megatron/layer.hpp"

namespace zeroplan {
namespace {

// Sizes of one expert layer on one rank.
struct ExpertShape {
  std::int64_t local;     // tokens before dispatch: sequence parallelism divides them
  std::int64_t sent;      // copies of them, one an expert chosen
  std::int64_t received;  // tokens the experts here work on, balanced
  std::int64_t width;     // intermediate features of a routed expert
  std::int64_t shared;    // of the shared experts, over tp
  std::int64_t branches;  // 2 where gated
};

ExpertShape expert_shape(const MegatronShape& s) {
  const MoeSpec& moe = *s.problem.model.moe;
  const RoutedTokens routed = routed_tokens(s.problem);
  return {.local = routed.local,
          .sent = routed.sent,
          .received = routed.received,
          .width = ceil_div(moe.intermediate_size, s.problem.layout.etp),
          .shared = ceil_div(moe.shared_intermediate_size, s.problem.layout.tp),
          .branches = moe.gated ? 2 : 1};
}

// Router scores, top-k and auxiliary loss; which token went where.
TensorList write_routing(BlockWriter& w, const MoeSpec& moe, std::int64_t local) {
  return {w.save("router scores", Bytes{(10 * moe.experts + 8 * moe.experts_per_token) * local}),
          w.save("row map", Bytes{4 * (2 * moe.experts + 1) * local})};
}

// An MLP whose linears gather and reduce by themselves (Megatron-Core @d98e8a64dd
// core/transformer/moe/shared_experts.py, without moe_shared_expert_overlap). Gives the output;
// what its backward pass reads goes to `t`.
Tensor write_shared_expert(BlockWriter& w,
                           const MegatronShape& s,
                           const ExpertShape& e,
                           FeedForwardTensors& t) {
  t.shared_fc1 = t.shared_activation = BlockWriter::none;
  if (e.shared == 0) return BlockWriter::none;
  const Tensor gathered = write_column_linear_input(w, s, s.token.hidden);
  t.shared_fc1 = w.save("shared expert fc1 output", s.features(e.branches * e.shared));
  w.free(gathered);
  t.shared_activation = w.save("shared expert activation output", s.features(e.shared));
  return write_row_linear_forward(w, s, "shared expert output");
}

// Frees the norm's output too, which the routed experts no longer read.
void write_shared_expert_backward(BlockWriter& w,
                                  const MegatronShape& s,
                                  const ExpertShape& e,
                                  const FeedForwardTensors& t) {
  if (e.shared == 0) return w.free_with_weights(t.norm.output);
  const Tensor activation =
      write_row_linear_backward(w, s, "shared expert activation gradient", e.shared);
  w.free_with_weights(t.shared_activation);
  const Tensor fc1 =
      w.temporary("shared expert fc1 output gradient", s.features(e.branches * e.shared));
  w.free(activation);
  w.free(t.shared_fc1);
  const Tensor input = write_column_linear_backward(w, s, t.norm.output, s.token.hidden);
  w.free_with_weights(fc1);
  w.free(input);
}

}  // namespace

Tensor write_expert_activation(BlockWriter& w, const MegatronShape& s) {
  const ExpertShape e = expert_shape(s);
  // Where the probabilities are applied in a kernel of their own, the unweighted activation stays
  // too.
  const std::int64_t copies = s.settings().bias_activation_fusion ? 1 : 2;
  return w.save("expert activation output", Bytes{copies * s.token.element * e.received * e.width});
}

void write_experts_forward(BlockWriter& w, const MegatronShape& s, FeedForwardTensors& t) {
  const ExpertShape e = expert_shape(s);
  const std::int64_t element = s.token.element;
  const auto rows = [&](std::int64_t tokens, std::int64_t width) {
    return Bytes{element * tokens * width};
  };
  t.routing = write_routing(w, *s.problem.model.moe, e.local);
  const Tensor shared = write_shared_expert(w, s, e, t);

  // The layer's closure holds all four token buffers until it returns.
  const Tensor permuted = w.temporary("permuted tokens", rows(e.sent, s.token.hidden));
  const Tensor received = w.temporary("received tokens", rows(e.received, s.token.hidden));
  t.expert_input = w.save("expert input and probabilities",
                          rows(e.received, s.token.hidden) + Bytes{2 * e.received});
  t.fc1_output = w.save("expert fc1 output", rows(e.received, e.branches * e.width));
  t.activation_output = write_expert_activation(w, s);
  const Tensor output = w.temporary("expert output", rows(e.received, s.token.hidden));
  const Tensor combined = w.temporary("combined tokens", rows(e.sent, s.token.hidden));
  t.result = w.temporary("expert layer output", s.residual());
  for (const Tensor buffer : {permuted, received, output, combined, shared}) w.free(buffer);
}

FeedForwardTensors write_moe_forward(BlockWriter& w, const MegatronShape& s) {
  FeedForwardTensors t{.norm = write_norm(w, s)};
  write_experts_forward(w, s, t);
  t.dropout_mask = w.save("hidden dropout mask", s.dropout_mask());
  return t;
}

void free_experts(BlockWriter& w, const FeedForwardTensors& t) {
  for (const Tensor tensor : t.routing) w.free(tensor);
  for (const Tensor tensor :
       {t.shared_fc1, t.shared_activation, t.expert_input, t.fc1_output, t.activation_output}) {
    w.free(tensor);
  }
}

Tensor write_moe_backward(BlockWriter& w, const MegatronShape& s, FeedForwardTensors t) {
  const ExpertShape e = expert_shape(s);
  const auto rows = [&](std::int64_t tokens, std::int64_t width) {
    return Bytes{s.token.element * tokens * width};
  };
  // Hands a gradient on: the new one is there before the old one goes.
  Tensor gradient = w.temporary("combined tokens gradient", rows(e.sent, s.token.hidden));
  const auto next = [&](std::string_view name, Bytes bytes, Tensor read) {
    const Tensor made = w.temporary(name, bytes);
    w.free(gradient);
    w.free(read);
    gradient = made;
  };
  // The same through a linear, whose weight gradient reads its input and its output's gradient.
  const auto through_linear = [&](std::string_view name, Bytes bytes, Tensor input) {
    const Tensor made = w.temporary(name, bytes);
    w.free_with_weights(gradient);
    w.free_with_weights(input);
    gradient = made;
  };
  next("expert output gradient", rows(e.received, s.token.hidden), t.dropout_mask);
  // Recomputed, the activation is its checkpoint's until that has passed the gradient on
  // (Megatron-LM @d98e8a64dd core/tensor_parallel/random.py CheckpointWithoutOutputFunction).
  const bool of_checkpoint = s.drops(RecomputeModule::moe_act) && !s.drops(RecomputeModule::moe);
  through_linear("expert activation gradient", rows(e.received, e.width),
                 of_checkpoint ? BlockWriter::none : t.activation_output);
  next("expert fc1 output gradient", rows(e.received, e.branches * e.width), t.fc1_output);
  if (of_checkpoint) w.free(t.activation_output);
  through_linear("expert input gradient", rows(e.received, s.token.hidden), t.expert_input);
  next("permuted tokens gradient", rows(e.sent, s.token.hidden), -1);
  next("expert layer input gradient", s.residual(), -1);
  for (const Tensor tensor : t.routing) w.free(tensor);
  if (s.drops_shared_experts_alone()) w.free(write_shared_expert(w, s, e, t));
  write_shared_expert_backward(w, s, e, t);
  return gradient;
}

}  // namespace zeroplan
