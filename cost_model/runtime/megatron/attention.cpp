// What does the attention half of a Megatron layer allocate? Front door: write_attention_forward.
#include "cost_model/runtime/megatron/context.hpp"
#include "cost_model/runtime/megatron/grouped_inputs.hpp"
#include "cost_model/runtime/megatron/unfused.hpp"

namespace zeroplan {
namespace {

// What the attention kernel and the linears before it read in the backward pass.
struct KernelInputs {
  TensorList saved;
  TensorList inputs;
  Tensor latent = BlockWriter::none;  // of keys and values
  TensorList operands;                // of the kernel, among the saved ones

  void free(BlockWriter& w) const {
    w.free(saved);
    w.free(inputs);
    w.free(latent);
  }
  void join(AttentionTensors& t) const {
    t.saved.insert(t.saved.end(), saved.begin(), saved.end());
    t.inputs.insert(t.inputs.end(), inputs.begin(), inputs.end());
    t.latents.push_back(latent);
  }
};

// A latent, or whatever sequence parallelism divides over the tokens as it does the residual.
Bytes divided(const MegatronShape& s, std::int64_t width) {
  return s.rows(s.token.element * width);
}

// Without a latent of their own queries are projected from the norm's output, which --qk-layernorm
// normalises once more (core/transformer/mla_qk_norm_config.py).
std::int64_t query_input(const MegatronShape& s) {
  const MlaSpec& mla = *s.problem.model.attention.mla;
  return mla.q_lora_rank > 0 ? mla.q_lora_rank : s.token.hidden;
}

Module query_linear(const MegatronShape& s) {
  return s.problem.model.attention.mla->q_lora_rank > 0 ? Module::q_up : Module::q;
}

// Queries, keys and values from latents, each normalised inside its up-projection, which alone
// tensor parallelism divides (Megatron-Core @d98e8a64dd core/transformer/multi_latent_attention.py:
// down-projections are duplicated and read each rank's rows).
KernelInputs write_up_projections(BlockWriter& w, const MegatronShape& s) {
  const MlaSpec& mla = *s.problem.model.attention.mla;
  KernelInputs k;
  const auto operand = [&](std::string_view name, Bytes bytes) {
    k.operands.push_back(w.save(name, bytes));
    k.saved.push_back(k.operands.back());
  };
  k.latent = w.save("key-value latent", divided(s, mla.kv_lora_rank));
  const auto read = [&](std::int64_t width) { return s.linear_input(divided(s, width)); };
  k.inputs.push_back(w.save("normalised query latent", read(query_input(s))));
  k.inputs.push_back(w.save("normalised key-value latent", read(mla.kv_lora_rank)));
  k.saved.push_back(w.save("latent norm statistics", s.rows(8)));
  w.run(Module::latent_norm);
  const Tensor query_latent = write_column_linear_input(w, s, query_input(s));
  w.run(query_linear(s));
  operand("queries", s.features(s.token.query));  // rotated in place
  w.free(query_latent);
  const Tensor latent = write_column_linear_input(w, s, mla.kv_lora_rank);
  const Tensor up = w.temporary("up-projected keys and values",
                                s.features(s.token.heads * mla.qk_nope_head_dim + s.token.output));
  w.run({Module::kv_up, Module::rotary});
  w.free(latent);
  operand("keys", s.features(s.token.key_value));
  operand("values", s.features(s.token.output));
  w.free(up);
  return k;
}

// The latents, then what is made of them. The down-projection's result stays where the
// up-projections run again from it, and with it the rotary part, which all heads share and each
// rank needs of all tokens.
KernelInputs write_latent_inputs(BlockWriter& w, const MegatronShape& s, AttentionTensors& t) {
  const MlaSpec& mla = *s.problem.model.attention.mla;
  t.latents.push_back(w.save("query latent", divided(s, mla.q_lora_rank)));
  if (mla.q_lora_rank > 0) w.run(Module::q_down);
  w.run({Module::kv_down, Module::qkv_split});
  const Bytes combined_bytes = divided(s, mla.kv_lora_rank + mla.qk_rope_head_dim);
  const bool again = s.drops(RecomputeModule::mla_up_proj);
  const std::string_view name = "key-value latent with rotary part";
  const Tensor combined = again ? w.save(name, combined_bytes) : w.temporary(name, combined_bytes);
  // No linear's input, and so in 16 bits.
  const Bytes whole = s.sequence_parallel() ? s.features(mla.qk_rope_head_dim) : Bytes{};
  const Tensor rotary = w.temporary("gathered linear input", whole);
  w.call("tp", Collective::all_gather, whole);
  const KernelInputs up = write_up_projections(w, s);
  t.operands = up.operands;
  if (again) {
    t.latents.push_back(combined);
    t.saved.push_back(rotary);
    return up;
  }
  w.free(rotary);
  w.free(combined);
  up.join(t);
  return {};
}

// What the joint projection, or those of latents, leave for their backward passes.
void leave_projections(BlockWriter& w, const MegatronShape& s, const AttentionTensors& t) {
  using enum OffloadModule;
  if (s.host == nullptr) return;
  if (s.drops_input_norm()) {
    s.host->copy(w, qkv_linear, t.norm.output, s.token.element);
  } else {
    leave(w, s, qkv_linear, {t.norm.output}, s.linear_input_element());
  }
  // Two linears read one tensor of 16 bits, of which two copies come back.
  const bool shared = s.problem.model.attention.mla && !is_quantized(s.problem.training.precision);
  if (shared) s.host->copy(w, qkv_linear, t.norm.output, s.token.element);
  leave(w, s, qkv_linear, t.inputs, s.linear_input_element());
  leave(w, s, qkv_linear, t.latents, s.token.element);
  leave(w, s, qkv_linear, t.before_norms, s.token.element);
}

// What the kernel reads leaves with it; of what it gives, which the projection reads too, a copy.
void leave_kernel(BlockWriter& w, const MegatronShape& s, const AttentionTensors& t, bool again) {
  using enum OffloadModule;
  if (s.host == nullptr) return;
  constexpr std::int64_t fp32 = 4;
  for (const Tensor operand : t.operands) {
    if (again) {
      s.host->copy(w, core_attn, operand, s.token.element);
    } else {
      leave(w, s, core_attn, {operand}, s.token.element);
    }
  }
  s.host->copy(w, core_attn, t.output, s.token.element);
  leave(w, s, core_attn, {t.log_sum_exp}, fp32);
}

// From the gradient of what was projected up, `mixed`, to that of the norm's output.
Tensor write_latent_backward(BlockWriter& w,
                             const MegatronShape& s,
                             const AttentionTensors& t,
                             Tensor mixed) {
  const MlaSpec& mla = *s.problem.model.attention.mla;
  w.run_backward(Module::rotary);
  const std::int64_t made_up = s.token.key_value - s.token.heads * mla.qk_rope_head_dim;
  TensorList latents{write_column_linear_backward(w, s, Module::kv_up, t.inputs[1],
                                                  mla.kv_lora_rank, made_up + s.token.output),
                     write_column_linear_backward(w, s, query_linear(s), t.inputs[0],
                                                  query_input(s), s.token.query)};
  free_with_weights(w, s, mixed);
  w.run_backward(Module::latent_norm);
  const Bytes whole = s.sequence_parallel() ? s.features(mla.qk_rope_head_dim) : Bytes{};
  const Tensor rotary = w.temporary("gradient of the rotary part", whole);
  const Bytes own = divided(s, mla.qk_rope_head_dim);
  latents.push_back(w.temporary("reduced gradient of the rotary part", own));
  w.call("tp", Collective::reduce_scatter, whole);
  w.free(rotary);
  const Tensor norm = w.temporary("input gradient of the latents", s.residual());
  w.run_backward(Module::qkv_split);
  w.run_linear_backward(Module::kv_down);
  if (mla.q_lora_rank > 0) w.run_linear_backward(Module::q_down);
  w.free_with_weights(t.norm.output);
  for (const Tensor latent : latents) free_with_weights(w, s, latent);
  return norm;
}

// What reads the norm of a layer's input, or of latents both down-projections: each saves a copy of
// its own as its product reads it, but for what recompute makes again.
Bytes norm_output(const MegatronShape& s) {
  if (s.drops_input_norm()) return s.residual();
  const bool copied = s.problem.model.attention.mla && is_quantized(s.problem.training.precision);
  return (copied ? 2 : 1) * s.linear_input(s.residual());
}

// The projection's input: the kernel's own output, or a copy of it, beside which that has no reader
// left but the kernel.
void leave_projection(BlockWriter& w, const MegatronShape& s, const AttentionTensors& t) {
  const bool apart = t.projection_input != BlockWriter::none;
  leave(w, s, OffloadModule::attn_proj, {apart ? t.projection_input : t.output},
        apart ? s.linear_input_element() : s.token.element);
}

}  // namespace

AttentionTensors write_attention_forward(BlockWriter& w, const MegatronShape& s) {
  AttentionTensors t{.norm = write_norm(w, s, Module::input_norm, norm_output(s))};
  KernelInputs dropped;
  TensorList grouped;
  Tensor viewed = BlockWriter::none;
  if (s.problem.model.attention.mla) {
    dropped = write_latent_inputs(w, s, t);
  } else {
    viewed = write_grouped_inputs(w, s, t, grouped);
  }
  leave_projections(w, s, t);
  const ContextCalls context(w, s);
  ContextTensors other = context.forward();
  w.run(Module::core_attention);
  if (unfused(s)) {
    const UnfusedKernel made = write_unfused_kernel(w, s);
    if (recomputes_scores(s)) {
      made.free(w);
    } else {
      t.saved.insert(t.saved.end(), made.repeated.begin(), made.repeated.end());
      t.scores = made.scores;
    }
  }
  if (repeats_keys(s) && !recomputes_scores(s)) {
    w.free(grouped);
  } else {
    t.saved.insert(t.saved.end(), grouped.begin(), grouped.end());
    t.operands.insert(t.operands.end(), grouped.begin(), grouped.end());
  }
  const Tensor sum = context.sum_of_parts();
  t.output = w.save("attention output", s.features(s.token.output));
  w.free(sum);
  if (!unfused(s)) t.log_sum_exp = w.save("log-sum-exp", Bytes{4 * s.token.heads * s.tokens});
  w.free(other.kernel);
  leave_kernel(w, s, t, !dropped.saved.empty());
  dropped.free(w);
  // flash-attn transposes its output when the micro-batch is above 1; all-to-all context
  // parallelism sends it back. Either way the projection reads another tensor than the kernel
  // wrote.
  const bool flash = !unfused(s) && s.settings().attention_backend == AttentionLibrary::flash;
  const bool sent = s.problem.layout.cp > 1 && s.settings().cp_comm_type == ContextTransport::a2a;
  const bool copied = sent || (flash && s.problem.layout.micro_batch > 1);
  const bool quantized = is_quantized(s.problem.training.precision) && !s.saves_original_inputs();
  const Bytes output = s.features(s.token.output);
  const bool gated = s.problem.model.attention.output_gate;
  if (gated && copied) t.saved.push_back(w.save("attention output in order", output));
  const Tensor product = w.temporary("gated output", gated && quantized ? output : Bytes{});
  t.projection_input = w.save("projection input", quantized         ? s.linear_input(output)
                                                  : copied || gated ? output
                                                                    : Bytes{});
  t.result = write_row_linear_forward(w, s, Module::proj, "projection output");
  leave_projection(w, s, t);
  w.free(viewed);
  w.free(product);
  w.free(other.half);
  t.dropout_mask = w.save("hidden dropout mask", s.dropout_mask());
  return t;
}

Tensor write_attention_backward(BlockWriter& w, const MegatronShape& s, AttentionTensors t) {
  Tensor output =
      write_row_linear_backward(w, s, Module::proj, "attention output gradient", s.token.output);
  w.free(t.dropout_mask);
  w.free_with_weights(t.projection_input);
  left(w, s, OffloadModule::attn_proj);
  const bool gated = s.problem.model.attention.output_gate;
  const Tensor of_gate = gated ? write_gate_backward(w, s, t.gate, output) : BlockWriter::none;
  const bool latent = s.problem.model.attention.mla.has_value();
  if (latent && s.drops(RecomputeModule::mla_up_proj)) write_up_projections(w, s).join(t);
  UnfusedKernel again;
  const ContextCalls context(w, s);
  if (s.drops(RecomputeModule::core_attn)) {
    context.send_forward();
    w.run(Module::core_attention);
  }
  context.send_backward();
  if (recomputes_scores(s)) again = write_unfused_kernel(w, s);
  const std::int64_t values = latent ? s.token.output : s.token.key_value;
  const Bytes inputs = s.features(s.token.query + s.token.key_value + values);
  const Bytes repeated = repeats_keys(s) ? s.features(s.token.query) : Bytes{};
  // The projection's weight gradient reads the kernel's output, unless it has a copy.
  const auto free_output = [&] {
    w.free(output);
    t.projection_input == BlockWriter::none ? w.free_with_weights(t.output) : w.free(t.output);
  };
  Tensor scores = BlockWriter::none;
  const Tensor of_values = w.temporary("repeated value gradients", repeated);
  if (unfused(s)) {
    const Tensor softmax = w.temporary("softmax gradient", narrow_scores(s));
    free_output();
    scores = write_scores_backward(w, s, softmax, recomputes_scores(s) ? again.scores : t.scores);
  }
  const Tensor of_keys = w.temporary("repeated key gradients", repeated);
  ContextTensors ring = context.backward();
  const Tensor kernel = w.temporary("query, key and value gradients", inputs);
  w.run_backward(Module::core_attention);
  if (context.is_ring()) w.free(kernel);
  w.free(ring.kernel);
  w.free(scores);
  w.free(again.repeated);
  if (!unfused(s)) free_output();
  w.free(t.log_sum_exp);
  w.free(t.saved);
  w.free(t.latents);
  left(w, s, OffloadModule::core_attn);
  for (const Tensor gradient : {of_values, of_keys}) w.free(gradient);
  // Contiguous, rotated back.
  Tensor mixed = w.temporary("mixed qkv gradient", latent ? inputs : mixed_gradient(s));
  context.is_ring() ? w.free(ring.half) : w.free(kernel);
  w.free(of_gate);
  if (latent) {
    const Tensor norm = write_latent_backward(w, s, t, mixed);
    left(w, s, OffloadModule::qkv_linear);
    return norm;
  }
  if (turns_heads(s.problem.model)) w.run_backward(Module::rotary);
  if (s.problem.model.attention.qk_norm) w.run_backward(Module::query_key_norm);
  w.run_backward(Module::qkv_split);
  mixed = write_projection_backward(w, s, mixed);
  const Tensor norm = write_column_linear_backward(w, s, Module::qkv, t.norm.output, s.token.hidden,
                                                   projected_width(s));
  free_with_weights(w, s, mixed);
  left(w, s, OffloadModule::qkv_linear);
  return norm;
}

}  // namespace zeroplan
