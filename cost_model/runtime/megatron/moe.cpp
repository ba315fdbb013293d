// What do the experts of a Megatron layer allocate? Front door: write_moe_forward.
#include "cost_model/runtime/megatron/expert_calls.hpp"
#include "cost_model/runtime/megatron/layer.hpp"

namespace zeroplan {
namespace {

// Sizes of one expert layer on one rank.
struct ExpertShape {
  std::int64_t local;     // tokens before dispatch: sequence parallelism divides them
  std::int64_t sent;      // copies of tokens, one an expert chosen
  std::int64_t received;  // tokens the experts here work on, balanced
  std::int64_t width;     // intermediate features of a routed expert
  std::int64_t branches;  // 2 where gated
};

ExpertShape expert_shape(const MegatronShape& s) {
  const MoeSpec& moe = *s.problem.model.moe;
  const RoutedTokens routed = routed_tokens(s.problem);
  return {.local = routed.local,
          .sent = routed.sent,
          .received = routed.received,
          .width = ceil_div(moe.intermediate_size, s.problem.layout.etp),
          .branches = moe.gated ? 2 : 1};
}

// What the backward pass reads of a token's scores, bytes an expert and a choice. A softmax's
// router has an auxiliary loss; a sigmoid's, whose bias balances it, has none, and divides what it
// chose by their sum (core/transformer/moe/moe_utils.py topk_routing_with_score_function).
std::int64_t score_bytes(const MoeSpec& moe) {
  constexpr std::int64_t sum = 4;
  return moe.router_bias ? 7 * moe.experts + 12 * moe.experts_per_token + sum
                         : 10 * moe.experts + 8 * moe.experts_per_token;
}

// Router scores, top-k and auxiliary loss; which token went where.
TensorList write_routing(BlockWriter& w, const MoeSpec& moe, std::int64_t local) {
  return {w.save("router scores", Bytes{score_bytes(moe) * local}),
          w.save("row map", Bytes{4 * (2 * moe.experts + 1) * local})};
}

// The product of the experts with its bias; `product` goes.
Tensor write_expert_bias(BlockWriter& w, Tensor product, Bytes bytes) {
  w.run(Module::expert_bias);
  const Tensor sums = w.temporary("expert outputs with their bias", 2 * bytes);
  const Tensor joined = w.temporary("joined expert outputs", 2 * bytes);
  w.free(sums);
  const Tensor narrowed = w.temporary("expert output", bytes);
  w.free(joined);
  w.free(product);
  return narrowed;
}

Tensor write_expert_bias_backward(BlockWriter& w, Tensor gradient, Bytes bytes) {
  w.run_backward(Module::expert_bias);
  const Tensor widened = w.temporary("widened expert output gradient", 2 * bytes);
  const Tensor narrowed = w.temporary("expert output gradients", bytes);
  const Tensor joined = w.temporary("joined expert output gradients", bytes);
  for (const Tensor done : {narrowed, widened, gradient}) w.free(done);
  return joined;
}

// Whether the experts' activation is weighted by the router's probabilities in its own kernel.
bool weights_activation(const MegatronShape& s) {
  const bool squares = !s.problem.model.moe->gated && s.problem.model.mlp.squared_relu;
  return squares ? s.settings().use_fused_weighted_squared_relu
                 : s.settings().bias_activation_fusion;
}

}  // namespace

Tensor write_expert_activation(BlockWriter& w, const MegatronShape& s) {
  const ExpertShape e = expert_shape(s);
  if (!s.settings().use_transformer_engine_op_fuser) w.run(Module::expert_activation);
  const Bytes whole{s.token.element * e.received * e.width};
  // What is made again is what the product saves (core/transformer/moe/experts.py
  // set_save_original_input).
  const Bytes read = s.checkpoints_expert_activation() ? whole : s.linear_input(whole);
  // Where the probabilities are applied in a kernel of their own, the unweighted activation stays
  // too.
  return w.save("expert activation output", weights_activation(s) ? read : whole + read);
}

namespace {

// Copies of tokens around the experts beside what they keep. Tokens of several experts are sorted
// by expert, and back; of one they stay as they arrived.
struct TokenBuffers {
  bool received, sorted, combined, all_stay;
};
TokenBuffers token_buffers(const MegatronShape& s) {
  // Copies padded to the experts' capacity all stay too, as measured (simumax-b200, DeepSeek-V2).
  if (counts_expert_ranks(s.settings()) || s.settings().moe_pad_to_capacity) {
    return {.received = true, .sorted = false, .combined = true, .all_stay = true};
  }
  const Layout& l = s.problem.layout;
  const bool sends = l.ep * l.etp > 1;
  const bool sorts = s.problem.model.moe->experts > l.ep;
  const bool narrowed = is_quantized(s.problem.training.precision);
  return {.received = sends && (sorts || narrowed),
          .sorted = sorts,
          .combined = sends,
          .all_stay = false};
}

}  // namespace

void write_experts_forward(BlockWriter& w, const MegatronShape& s, FeedForwardTensors& t) {
  const ExpertShape e = expert_shape(s);
  const MoeSpec& moe = *s.problem.model.moe;
  const std::int64_t element = s.token.element;
  const auto rows = [&](std::int64_t tokens, std::int64_t width) {
    return Bytes{element * tokens * width};
  };
  const std::size_t start = w.position();
  t.routing = write_routing(w, moe, e.local);
  w.run(Module::router);
  const Tensor shared = write_shared_experts(w, s, t);

  // The stream's features become those of latents, and back, on the ranks that sent them
  // (core/transformer/moe/moe_layer.py preprocess, postprocess).
  const bool latent = moe.latent_size > 0;
  const Bytes of_latents = s.rows(element * s.token.routed);
  const Tensor projected = w.temporary("latents of tokens", latent ? of_latents : Bytes{});
  if (latent) w.run(Module::fc1_latent_proj);

  // The layer's variables hold what was sent and what arrived until it returns; what experts gave
  // goes when it is in the order in which it is sent back (core/transformer/moe/moe_layer.py
  // forward, token_dispatcher.py MoEAlltoAllTokenDispatcher). DeepEP's buffers all stay.
  const TokenBuffers buffers = token_buffers(s);
  const Tensor permuted = w.temporary("permuted tokens", rows(e.sent, s.token.routed));
  w.run(Module::permute);
  w.free(projected);
  const ExpertCalls experts(w, s);
  const Bytes tokens = rows(e.received, s.token.routed);
  const Tensor received = w.temporary("received tokens", buffers.received ? tokens : Bytes{});
  experts.dispatch();
  t.expert_input =
      w.save("expert input and probabilities", s.linear_input(tokens) + Bytes{2 * e.received});
  t.fc1_output = w.save("expert fc1 output", rows(e.received, e.branches * e.width));
  w.run(Module::fc1);
  leave(w, s, OffloadModule::expert_fc1, {t.expert_input}, s.linear_input_element());
  const Tensor made = t.fc1_output;
  t.fc1_output = write_activation_input(w, s, made, s.checkpoints_expert_activation());
  t.activation_output = write_expert_activation(w, s);
  Tensor output = w.temporary("expert output", tokens);
  w.run(Module::fc2);
  if (t.fc1_output != made) w.free(made);
  leave(w, s, OffloadModule::moe_act, {t.fc1_output}, s.token.element);
  leave(w, s, OffloadModule::fused_group_mlp, {t.expert_input}, s.linear_input_element());
  leave(w, s, OffloadModule::fused_group_mlp, {t.fc1_output}, s.token.element);
  if (s.checkpoints_expert_activation()) {
    w.free(t.activation_output);
  } else {
    leave(w, s, OffloadModule::fused_group_mlp, {t.activation_output}, s.linear_input_element());
  }
  if (weights_expert_biases(s.problem)) output = write_expert_bias(w, output, tokens);
  const auto hand_on = [&](Tensor made_of_it) {
    w.free(output);
    output = made_of_it;
  };
  if (buffers.sorted) hand_on(w.temporary("expert output by rank", tokens));
  Tensor combined = BlockWriter::none;
  if (buffers.combined) {
    combined = w.temporary("combined tokens", rows(e.sent, s.token.routed));
    if (!buffers.all_stay) hand_on(BlockWriter::none);
  }
  experts.combine();
  Tensor before_sum = BlockWriter::none;
  if (latent) {
    t.latents = w.save("latents of experts", s.linear_input(of_latents));
    w.run(Module::fc2_latent_proj);
    before_sum = w.temporary("output of routed experts",
                             moe.shared_intermediate_size > 0 ? s.residual() : Bytes{});
  }
  t.result = w.temporary("expert layer output", s.residual());
  if (moe.shared_intermediate_size > 0) w.run(Module::shared_sum);
  w.free(before_sum);
  for (const Tensor buffer : {permuted, received, output, combined, shared}) w.free(buffer);
  t.saved = w.saved_since(start);
}

FeedForwardTensors write_moe_forward(BlockWriter& w, const MegatronShape& s) {
  FeedForwardTensors t{.norm = write_pre_mlp_norm(w, s, LayerKind::moe)};
  write_experts_forward(w, s, t);
  t.dropout_mask = w.save("hidden dropout mask", s.dropout_mask());
  return t;
}

Tensor write_moe_backward(BlockWriter& w, const MegatronShape& s, FeedForwardTensors t) {
  const ExpertShape e = expert_shape(s);
  const MoeSpec& moe = *s.problem.model.moe;
  const auto rows = [&](std::int64_t tokens, std::int64_t width) {
    return Bytes{s.token.element * tokens * width};
  };
  // Hands a gradient on: the new one is there before the old one goes.
  const bool latent = moe.latent_size > 0;
  Tensor of_latents = BlockWriter::none;
  if (latent) {
    of_latents =
        w.temporary("gradient of experts' latents", s.rows(s.token.element * s.token.routed));
    w.run_linear_backward(Module::fc2_latent_proj);
    w.free_with_weights(t.latents);
  }
  Tensor gradient = w.temporary("combined tokens gradient", rows(e.sent, s.token.routed));
  w.free(of_latents);
  const auto next = [&](std::string_view name, Bytes bytes, Tensor read) {
    const Tensor made = w.temporary(name, bytes);
    w.free(gradient);
    w.free(read);
    gradient = made;
  };
  // Hands a gradient on through a linear, whose weight gradient reads its input and its output's
  // gradient. The weight gradients of all experts here are one tensor (TransformerEngine @d0067d0da
  // pytorch/module/grouped_linear.py).
  const std::int64_t local_experts = moe.experts / s.problem.layout.ep;
  const auto through_linear = [&](std::string_view name, Bytes bytes, Tensor input,
                                  std::int64_t width) {
    const Tensor made = w.temporary(name, bytes);
    if (s.settings().moe_grouped_gemm) {
      write_weight_gradient(w, s, local_experts * width * s.token.routed);
    }
    free_with_weights(w, s, gradient);
    w.free_with_weights(input);
    gradient = made;
  };
  const ExpertCalls experts(w, s);
  next("expert output gradient", rows(e.received, s.token.routed), t.dropout_mask);
  experts.dispatch_gradients();
  if (weights_expert_biases(s.problem)) {
    gradient = write_expert_bias_backward(w, gradient, rows(e.received, s.token.routed));
  }
  // Recomputed, the activation is its checkpoint's until that has passed the gradient on
  // (Megatron-LM @d98e8a64dd core/tensor_parallel/random.py CheckpointWithoutOutputFunction).
  w.run_linear_backward(Module::fc2);
  const bool of_checkpoint = s.checkpoints_expert_activation();
  through_linear("expert activation gradient", rows(e.received, e.width),
                 of_checkpoint ? BlockWriter::none : t.activation_output, e.width);
  if (!s.settings().use_transformer_engine_op_fuser) w.run_backward(Module::expert_activation);
  const Tensor read = widen_activation_input(w, s, t.fc1_output, of_checkpoint);
  next("expert fc1 output gradient", rows(e.received, e.branches * e.width), t.fc1_output);
  w.free(read);
  if (of_checkpoint) w.free(t.activation_output);
  left(w, s, OffloadModule::moe_act);
  w.run_linear_backward(Module::fc1);
  through_linear("expert input gradient", rows(e.received, s.token.routed), t.expert_input,
                 e.branches * e.width);
  left(w, s, OffloadModule::expert_fc1);
  left(w, s, OffloadModule::fused_group_mlp);
  next("permuted tokens gradient", rows(e.sent, s.token.routed), -1);
  experts.combine_gradients();
  w.run_backward(Module::permute);
  if (latent) {
    next("gradient of tokens' latents", s.rows(s.token.element * s.token.routed), -1);
    w.run_linear_backward(Module::fc1_latent_proj);
  }
  next("expert layer input gradient", s.residual(), -1);
  if (moe.shared_intermediate_size > 0) w.run_backward(Module::shared_sum);
  w.run_linear_backward(Module::router);
  w.free(t.routing);
  if (s.drops_shared_experts_alone()) w.free(write_shared_experts(w, s, t));
  write_shared_experts_backward(w, s, t);
  return gradient;
}

}  // namespace zeroplan
