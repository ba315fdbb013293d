// Which bytes do a layer's memory-bound kernels move? Front door: layer_traffic.
#include "cost_model/kernel/layer_traffic.hpp"

#include <cmath>

#include "cost_model/kernel/cast_traffic.hpp"
#include "cost_model/kernel/delta_rule.hpp"
#include "cost_model/kernel/expert_traffic.hpp"
#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/kernel/layer_gemms.hpp"
#include "cost_model/kernel/residual_traffic.hpp"
#include "cost_model/kernel/spelt_traffic.hpp"
#include "cost_model/kernel/state_space.hpp"
#include "cost_model/kernel/time_constants.hpp"
#include "cost_model/rank/token_shape.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t usual_kernels = 16;  // of a layer
Bytes times(Bytes bytes, double factor) {
  return Bytes{std::llround(static_cast<double>(bytes.count()) * factor)};
}

bool is_flexible(const Problem& p) {
  return p.layout.ep > 1 && p.runtime.megatron.moe_token_dispatcher_type == TokenDispatcher::flex;
}

// Whether activation and casts happen inside the experts' grouped products.
bool fuses_experts(const Problem& p) {
  return p.runtime.megatron.use_transformer_engine_op_fuser;
}

// Transformer Engine's all-to-alls of context parallelism: each tensor is copied into the order of
// the ranks before, and into that of the two chunks of a rank after it, or the other way round
// (pytorch/attention/dot_product_attention/context_parallel.py flash_attn_a2a_communicate).
constexpr std::int64_t reorder_passes = 4;

// A ring's partial results are added up where they are complete, all or half of them in turn: the
// first is written, to the others' sum each is added. Forward the weighted outputs, backward the
// gradients of queries, keys and values
// (pytorch/attention/dot_product_attention/context_parallel.py AttnFuncWithCPAndKVP2P).
Bytes ring_sums(const TrafficSizes& s, std::int64_t width) {
  constexpr std::int64_t copied = 2, added = 3;
  const std::int64_t quarters = 4 * copied + 3 * added * (s.problem.layout.cp - 1);
  return Bytes{s.features(quarters, width).count() / 4};
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

void add_attention(std::vector<Traffic>& out, const TrafficSizes& s) {
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
  if (turns_heads(model) && habits.spells_out_layers) {
    for (const std::int64_t width : {s.token.query, s.token.key_value}) {
      add_spelt(out, Module::rotary, SpeltPart::rotation, s.features(1, width), habits.autocast);
    }
  } else if (turns_heads(model)) {
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

// Of layers that keep a state.
void add_recurrence(std::vector<Traffic>& out, const TrafficSizes& s) {
  const Layout& l = s.problem.layout;
  if (s.problem.model.state_space) {
    return add_state_space(out, local_state_space(s.problem), s.tokens * l.cp, l.micro_batch,
                           {.turns_samples = !s.habits.spells_out_layers && l.micro_batch > 1,
                            .exchanges_heads = l.cp > 1});
  }
  add_linear_attention(out, local_linear_attention(s.problem), s.tokens * l.cp,
                       {.spells_out = s.habits.spells_out_layers,
                        .exchanges_heads = l.cp > 1,
                        .turns_samples = !s.habits.spells_out_layers && l.micro_batch > 1});
}

// Gated: reads both branches, writes their product; backward reads them and a gradient, writes two.
// A copy of both in 8 bits, of half the bytes, is written and read again by kernels of their own.
Traffic activation_traffic(const TrafficSizes& s, Module module, Bytes branch, bool gated) {
  const bool narrowed = s.problem.runtime.megatron.activation_func_fp8_input_store;
  const Bytes cast = narrowed ? 3 * branch : Bytes{};
  return {module, Access::streaming, branch * (gated ? 3 : 2) + cast,
          branch * (gated ? 5 : 3) + cast};
}

void add_router(std::vector<Traffic>& out, const TrafficSizes& s) {
  // fp32 scores: softmax, top-k, and the auxiliary loss each read and write them about once.
  const Bytes scores{s.problem.model.moe->experts * routed_tokens(s.problem).local * 3 * 2 * 4};
  out.push_back({Module::router, Access::streaming, scores, scores});
}

void add_shared_experts(std::vector<Traffic>& out, const TrafficSizes& s) {
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

void add_routed_experts(std::vector<Traffic>& out, const TrafficSizes& s) {
  const MoeSpec& moe = *s.problem.model.moe;
  const Layout& l = s.problem.layout;
  const RoutedTokens routed = routed_tokens(s.problem);
  constexpr std::int64_t fp32 = 4;
  const std::int64_t element = s.habits.wide_experts ? fp32 : s.token.element;
  const std::int64_t row = element * s.token.routed;
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
void add_rest(std::vector<Traffic>& out, const TrafficSizes& s, LayerKind kind) {
  const ModelSpec& model = s.problem.model;
  const LayerNorms norms = layer_norms(s.problem);
  if (norms.input && has_mixer(kind)) add_norm(out, s, Module::input_norm);
  if (norms.pre_mlp && has_feed_forward(kind)) add_norm(out, s, Module::pre_mlp_norm);
  if (norms.after) add_norm(out, s, Module::post_norm);
  out.push_back(sum_traffic(s, Module::residual));
  if (has_mixer(kind)) is_linear(kind) ? add_recurrence(out, s) : add_attention(out, s);
  if (!has_feed_forward(kind)) return;
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
    if (is_norm(module) && !has_norm_bias(p.model)) return passes.composite_norm_passes;
    return module == Module::rotary ? passes.complex_rotation_passes : 1;
  }
  return habits.local_kernels ? passes.local_passes : 1;
}

}  // namespace

std::vector<Traffic> layer_traffic(const Problem& problem, LayerKind kind, LayerPart part) {
  const TrafficSizes s = traffic_sizes(problem);
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

}  // namespace zeroplan
