// Which bytes do memory-bound kernels move? Front doors: layer_traffic, head_traffic.
#include "cost_model/kernel/layer_traffic.hpp"

#include <cmath>

#include "cost_model/kernel/cast_traffic.hpp"
#include "cost_model/kernel/delta_rule.hpp"
#include "cost_model/kernel/expert_traffic.hpp"
#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/kernel/layer_gemms.hpp"
#include "cost_model/kernel/spelt_traffic.hpp"
#include "cost_model/kernel/time_constants.hpp"
#include "cost_model/rank/loss_parts.hpp"
#include "cost_model/rank/token_shape.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t usual_kernels = 16;  // of a layer
Bytes times(Bytes bytes, double factor) {
  return Bytes{std::llround(static_cast<double>(bytes.count()) * factor)};
}

struct Sizes {
  const Problem& problem;
  KernelHabits habits;
  TokenShape token;
  std::int64_t tokens;       // of the micro-batch
  std::int64_t norm_tokens;  // of those, in the regions that sequence parallelism divides

  Bytes residual(std::int64_t passes) const {
    return Bytes{passes * token.element * token.hidden * norm_tokens};
  }
  Bytes features(std::int64_t passes, std::int64_t width) const {
    return Bytes{passes * token.element * width * tokens};
  }
};

Sizes sizes_of(const Problem& p) {
  const TokenShape token = token_shape(p);
  const std::int64_t tokens = local_tokens(p);
  return {p, kernel_habits(p), token, tokens, ceil_div(tokens, token.norm_rows)};
}

bool is_flexible(const Problem& p) {
  return p.layout.ep > 1 && p.runtime.megatron.moe_token_dispatcher_type == TokenDispatcher::flex;
}

// Whether activation and casts happen inside the experts' grouped products.
bool fuses_experts(const Problem& p) {
  return p.runtime.megatron.use_transformer_engine_op_fuser;
}

// Forward reads the input and writes the output; backward reads input and gradient and writes one.
void add_norm(std::vector<Traffic>& out, const Sizes& s, Module module, Bytes normed) {
  const bool of_heads = module == Module::query_key_norm;  // which reads a linear's 16 bits
  const bool wide = s.habits.autocast && !of_heads;
  const bool spelt = s.habits.spells_out_layers ||
                     (s.habits.spells_out_input_norm && module == Module::input_norm);
  if (spelt && s.problem.model.norm == Norm::rms) {
    return add_spelt(out, module, SpeltPart::norm, normed, wide);
  }
  const std::int64_t passes = wide ? 2 : 1;
  out.push_back({module, Access::streaming, normed * (2 * passes), normed * (3 * passes)});
}

void add_norm(std::vector<Traffic>& out, const Sizes& s, Module module) {
  add_norm(out, s, module, s.residual(1));
}

// Forward adds two tensors; backward adds the gradients of the two paths that start here. Dropout
// is fused into the forward sum, with a mask of one byte; its backward is a kernel of its own.
Traffic sum_traffic(const Sizes& s, Module module) {
  // Under autocast a linear's 16 bits are added to fp32, and gradients are fp32.
  const bool wide = s.habits.autocast;
  Traffic sum{module, Access::streaming, s.residual(wide ? 1 + 2 + 2 : 3),
              s.residual(wide ? 3 * 2 : 3)};
  if (drops_residuals(s.problem)) {
    const Bytes mask{s.token.hidden * s.norm_tokens};
    sum.forward += mask;
    sum.backward += s.residual(2) + mask;
  }
  return sum;
}

// Transformer Engine's all-to-alls of context parallelism: each tensor is copied into the order of
// the ranks before, and into that of the two chunks of a rank after it, or the other way round
// (pytorch/attention/dot_product_attention/context_parallel.py flash_attn_a2a_communicate).
constexpr std::int64_t reorder_passes = 4;

// A ring's partial results are added up where they are complete, all or half of them in turn: the
// first is written, to the others' sum each is added. Forward the weighted outputs, backward the
// gradients of queries, keys and values
// (pytorch/attention/dot_product_attention/context_parallel.py AttnFuncWithCPAndKVP2P).
Bytes ring_sums(const Sizes& s, std::int64_t width) {
  constexpr std::int64_t copied = 2, added = 3;
  const std::int64_t quarters = 4 * copied + 3 * added * (s.problem.layout.cp - 1);
  return Bytes{s.features(quarters, width).count() / 4};
}

// The hidden state of all tokens is read and written so many times a pass.
void add_rank_order(std::vector<Traffic>& out, const Sizes& s, std::int64_t times) {
  if (!s.habits.orders_ranks || s.token.norm_rows == 1) return;
  const Bytes copied = s.features(2 * times, s.token.hidden);
  out.push_back({Module::rank_order, Access::streaming, copied, copied});
}

struct RotationPasses {
  std::int64_t forward = 2;
  std::int64_t backward = 2;
};

// Spelt out (Megatron-LM @d98e8a64dd core/models/common/embeddings/rope_utils.py
// _apply_rotary_pos_emb_bshd): two products, their sum, the half that changes sign, the halves put
// together, and what is rotated joined with an empty rest. Backward adds the gradients of both
// products and of both parts, each of which is padded with zeros first.
RotationPasses rotation_passes(const KernelHabits& habits) {
  if (!habits.spells_out_rotation) return {};
  constexpr std::int64_t product = 2, sum = 3, sign = 1, together = 2, zeros = 1, copied = 2;
  return {.forward = 2 * product + sum + sign + together + together,
          .backward = 2 * product + sum + sign + together + 2 * zeros + copied + sum};
}

void add_attention(std::vector<Traffic>& out, const Sizes& s) {
  const ModelSpec& model = s.problem.model;
  const KernelHabits& habits = s.habits;
  const std::int64_t query_key = s.token.query + s.token.key_value;
  const std::int64_t values = model.attention.mla ? s.token.output : s.token.key_value;
  // The joint projection (or MLA's two) is cut into contiguous queries, keys and values; Megatron's
  // own attention reads them where they are, and makes its output contiguous instead.
  // Transformers' are apart, and transposed by their strides.
  const Bytes split = s.features(2, query_key + values);
  const bool views = runs_local_layers(s.problem);
  if (habits.spells_out_layers) {
    constexpr int beside_first = 2;
    for (int i = 0; i < beside_first; ++i) {
      add_spelt(out, Module::qkv_split, SpeltPart::another_projection, s.residual(1),
                habits.autocast);
    }
  } else {
    out.push_back({Module::qkv_split, Access::streaming,
                   views ? s.features(2, s.token.query) : split, split});
  }
  if (habits.exchanges_heads) {
    const Bytes moved = s.features(reorder_passes, query_key + values + s.token.output);
    out.push_back({Module::core_attention, Access::streaming, moved, moved});
  }
  if (habits.attends_by_ring) {
    out.push_back({Module::core_attention, Access::streaming, ring_sums(s, s.token.output),
                   ring_sums(s, query_key + values)});
  }
  if (model.learned_positions == 0 && habits.spells_out_layers) {
    for (const std::int64_t width : {s.token.query, s.token.key_value}) {
      add_spelt(out, Module::rotary, SpeltPart::rotation, s.features(1, width), habits.autocast);
    }
  } else if (model.learned_positions == 0) {
    const RotationPasses passes = rotation_passes(habits);
    out.push_back({Module::rotary, Access::streaming, s.features(passes.forward, query_key),
                   s.features(passes.backward, query_key)});
  }
  if (normalises_heads(s.problem)) {
    add_norm(out, s, Module::query_key_norm, s.features(1, query_key));
  }
  if (model.attention.output_gate) {
    add_output_gate(out, s.features(1, s.token.query), habits.spells_out_layers);
  }
  if (const auto& mla = model.attention.mla) {
    const std::int64_t latents =
        s.token.element * (mla->q_lora_rank + mla->kv_lora_rank) * s.norm_tokens;
    add_norm(out, s, Module::latent_norm, Bytes{latents});
  }
}

void add_delta_rule(std::vector<Traffic>& out, const Sizes& s) {
  const Layout& l = s.problem.layout;
  add_linear_attention(out, local_linear_attention(s.problem), s.tokens * l.cp,
                       {.spells_out = s.habits.spells_out_layers,
                        .exchanges_heads = l.cp > 1,
                        .turns_samples = !s.habits.spells_out_layers && l.micro_batch > 1});
}

// Gated: reads both branches, writes their product; backward reads them and a gradient, writes two.
// A copy of both in 8 bits, of half the bytes, is written and read again by kernels of their own.
Traffic activation_traffic(const Sizes& s, Module module, Bytes branch, bool gated) {
  const bool narrowed = s.problem.runtime.megatron.activation_func_fp8_input_store;
  const Bytes cast = narrowed ? 3 * branch : Bytes{};
  return {module, Access::streaming, branch * (gated ? 3 : 2) + cast,
          branch * (gated ? 5 : 3) + cast};
}

void add_router(std::vector<Traffic>& out, const Sizes& s) {
  // fp32 scores: softmax, top-k, and the auxiliary loss each read and write them about once.
  const Bytes scores{s.problem.model.moe->experts * routed_tokens(s.problem).local * 3 * 2 * 4};
  out.push_back({Module::router, Access::streaming, scores, scores});
}

void add_shared_experts(std::vector<Traffic>& out, const Sizes& s) {
  const MoeSpec& moe = *s.problem.model.moe;
  if (moe.shared_intermediate_size == 0) return;
  const Bytes width = s.features(1, ceil_div(moe.shared_intermediate_size, s.problem.layout.tp));
  out.push_back(activation_traffic(s, Module::shared_activation, width, moe.gated));
  out.push_back({Module::shared_sum, Access::streaming, s.residual(3), s.residual(3)});
  // The gate's weight of a token times what it weighs; back, both gradients of that, its part of
  // the input's, and the sum with the other parts.
  if (moe.shared_expert_gate) {
    out.push_back({Module::shared_sum, Access::streaming, s.residual(2), s.residual(10)});
  }
}

void add_routed_experts(std::vector<Traffic>& out, const Sizes& s) {
  const MoeSpec& moe = *s.problem.model.moe;
  const Layout& l = s.problem.layout;
  const RoutedTokens routed = routed_tokens(s.problem);
  constexpr std::int64_t fp32 = 4;
  const std::int64_t element = s.habits.wide_experts ? fp32 : s.token.element;
  const std::int64_t row = element * s.token.hidden;
  const std::int64_t width = ceil_div(moe.intermediate_size, l.etp);
  if (!fuses_experts(s.problem)) {
    const Bytes branch{element * width * routed.received};
    out.push_back(activation_traffic(s, Module::expert_activation, branch, moe.gated));
    if (s.habits.clamps_apart) out.push_back(clamp_traffic(branch));
    if (s.habits.weights_expert_biases) add_expert_biases(out, s.problem);
  }
  if (is_flexible(s.problem)) {
    // What arrived once a rank is copied into the order of the experts, and summed up on the way
    // back (core/transformer/moe/fused_a2a.py, fused_permute).
    const Bytes moved{2 * row * (received_once(s.problem) + routed.received)};
    out.push_back({Module::permute, Access::permute, moved, moved});
    return;
  }
  // Each token is read once an expert it goes to and written there; then the way back.
  const Bytes permuted{row * (3 * routed.sent + routed.local)};
  const bool fused = s.habits.fuses_permutation;
  out.push_back({Module::permute, fused ? Access::permute : Access::scatter, permuted, permuted});
  if (l.ep > 1 && moe.experts > l.ep) {
    const Bytes sorted{row * routed.received * 2 *
                       2};  // from the ranks in turn by expert, and back
    out.push_back({Module::permute, Access::streaming, sorted, sorted});
  }
}

// Attention, and all of the MLP that is not routed.
void add_rest(std::vector<Traffic>& out, const Sizes& s, LayerKind kind) {
  const ModelSpec& model = s.problem.model;
  const LayerNorms norms = layer_norms(s.problem);
  if (norms.input) add_norm(out, s, Module::input_norm);
  if (norms.pre_mlp) add_norm(out, s, Module::pre_mlp_norm);
  if (norms.after) add_norm(out, s, Module::post_norm);
  out.push_back(sum_traffic(s, Module::residual));
  is_linear(kind) ? add_delta_rule(out, s) : add_attention(out, s);
  if (has_experts(kind)) {
    add_router(out, s);
    add_shared_experts(out, s);
    return;
  }
  const Bytes branch = s.features(1, s.token.mlp);
  if (s.habits.spells_out_layers && spells_mlp(model)) {
    return add_spelt_mlp(out, model, branch, s.residual(1), s.habits.autocast);
  }
  out.push_back(activation_traffic(s, Module::activation, branch, model.mlp.gated));
}

bool is_norm(Module module) {
  return name_of(module).ends_with("norm");
}

// How often what a fused kernel moves once goes through memory.
double passes_of(const Problem& p, const KernelHabits& habits, Module module) {
  const kernels::Shared& passes = time_constants(p.cluster.gpu).kernels;
  if (habits.eager) {
    if (is_norm(module) && p.model.norm == Norm::rms) return passes.composite_norm_passes;
    return module == Module::rotary ? passes.complex_rotation_passes : 1;
  }
  return habits.local_kernels ? passes.local_passes : 1;
}

// What several parts move beside the loss itself.
void add_parts(std::vector<Traffic>& out, const Sizes& s, const LossParts& parts, Bytes logits) {
  const std::int64_t element = s.token.element;
  if (parts.of_logits()) {
    // The gradients of all parts become one tensor.
    out.push_back({Module::gradient_of_parts, Access::streaming, {}, 2 * logits});
    return;
  }
  constexpr std::int64_t fp32 = 4;
  const auto add = [&](std::int64_t bytes, std::int64_t elements, std::int64_t times) {
    out.push_back(
        {Module::gradient_of_parts, Access::streaming, Bytes{bytes * elements}, {}, times});
  };
  // The weight's: the first is widened to the reduction's format, the others are added to it
  // (torch/distributed/fsdp/_fully_shard/_fsdp_param.py to_accumulated_grad_if_needed,
  // accumulate_unsharded_grad_if_needed).
  const std::int64_t words =
      local_weight(embedding_weights(s.problem.model).front(), s.problem).elements();
  if (element < fp32) add(element + fp32, words, 1);
  add(fp32 + element + fp32, words, parts.count - 1);
  // The hidden state's: widened and copied into a buffer of zeros, which is narrowed in the end
  // (torchtitan components/loss.py GradAccumulator).
  const std::int64_t features = s.token.hidden * s.tokens;
  const std::int64_t part = ceil_div(features, parts.count);
  add(fp32, features, 1);
  if (element < fp32) add(element + fp32, part, parts.count);
  add(2 * fp32, part, parts.count);
  if (element < fp32) add(fp32 + element, features, 1);
}

}  // namespace

std::vector<Traffic> layer_traffic(const Problem& problem, LayerKind kind, LayerPart part) {
  const Sizes s = sizes_of(problem);
  const KernelHabits& habits = s.habits;
  std::vector<Traffic> out;
  out.reserve(usual_kernels);
  if (has_rest(part)) add_rest(out, s, kind);
  if (has_experts(kind) && has_routed(part)) add_routed_experts(out, s);
  for (Traffic& t : out) {
    if (t.access != Access::streaming) continue;
    const double passes = passes_of(problem, habits, t.module);
    t.forward = times(t.forward, passes);
    t.backward = times(t.backward, passes);
  }
  constexpr std::int64_t gathered_and_reduced = 2;
  if (has_rest(part)) add_rank_order(out, s, gathered_and_reduced);
  add_layer_casts(out, problem, kind, part);
  if (habits.layer_sum_bytes > 0) {
    const std::int64_t elements = local_elements(layer_weights(problem.model, kind, part), problem);
    const Bytes moved{habits.layer_sum_bytes * elements};
    out.push_back({Module::gradient_sum, Access::streaming, {}, moved});
  }
  return out;
}

std::vector<Traffic> embedding_traffic(const Problem& problem) {
  const Sizes s = sizes_of(problem);
  std::int64_t table = local_weight(embedding_weights(problem.model).front(), problem).elements();
  // PyTorch writes a dense gradient of the table, zeros and all, and adds it to the sum.
  const std::int64_t own = s.habits.embedding_sum_bytes;
  const std::int64_t sum = own > 0 ? own : 3 * s.token.element;
  const Bytes gradient{(s.token.element + sum) * table};
  std::vector<Traffic> out{
      {Module::embedding, Access::streaming, s.residual(2), s.residual(2) + gradient}};
  if (problem.model.learned_positions > 0) out.push_back(sum_traffic(s, Module::embedding));
  if (problem.model.embedding_norm) add_norm(out, s, Module::embedding);
  add_rank_order(out, s, 1);
  return out;
}

std::vector<Traffic> head_traffic(const Problem& problem) {
  const Sizes s = sizes_of(problem);
  const Weight words = embedding_weights(problem.model).front();
  const std::int64_t logits = s.tokens * local_weight(words, problem).rows;
  const LossTraffic loss = s.habits.loss;
  const LossParts parts = loss_parts(problem);
  const std::int64_t part = ceil_div(logits, parts.count);
  std::vector<Traffic> out{
      {Module::loss, Access::streaming, Bytes{loss.forward * part}, Bytes{loss.backward * part}}};
  if (parts.count > 1) add_parts(out, s, parts, Bytes{s.token.element * logits});
  if (problem.model.final_norm) add_norm(out, s, Module::final_norm);
  add_rank_order(out, s, 1);
  add_head_casts(out, problem);
  return out;
}

}  // namespace zeroplan
