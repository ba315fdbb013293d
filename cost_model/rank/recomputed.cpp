// What does recompute repeat? Front door: is_recomputed.
#include "cost_model/rank/recomputed.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace zeroplan {
namespace {

constexpr std::array<std::string_view, 3> dense_mlp{"fc1", "fc2", "activation"};
constexpr std::array<std::string_view, 5> up_projections{"q", "q_up", "kv_up", "rotary",
                                                         latent_norm_module};
constexpr std::array<std::string_view, 4> of_shared_experts{"shared_fc1", "shared_fc2",
                                                            "shared_activation", "shared_gate"};
constexpr std::array<std::string_view, 6> of_routed_experts{
    "router", "permute", "sort by expert", "fc1", "fc2", "expert activation"};

// torchtitan keeps the first, third, fifth and seventh product of a llama layer, and attention.
constexpr std::array<std::string_view, 5> titan_kept{"q_proj", "v_proj", "gate_proj", "down_proj",
                                                     core_attention_module};

bool contains(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// torchtitan's selective recompute by layer: every Nth one.
bool whole_layers(const Problem& p) {
  return p.runtime.kind == Runtime::fsdp2 && p.layout.recompute == Recompute::selective &&
         p.runtime.fsdp2.selective_ac_layers > 0;
}

// Layers at the beginning of each chunk, where only those are recomputed.
std::optional<std::int64_t> first_recomputed(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  const bool block = p.runtime.kind == Runtime::megatron && p.layout.recompute == Recompute::full &&
                     set.recompute_num_layers > 0 && set.recompute_method == RecomputeMethod::block;
  if (!block) return std::nullopt;
  return set.recompute_num_layers;
}

RepeatSet of_megatron(const Problem& p, LayerKind kind, std::string_view module) {
  using enum RecomputeModule;
  if (module == core_attention_module) return repeated_by(core_attn);
  if (module == input_norm_module) {
    return has_own_input_norm(p) ? repeated_by(layernorm) : whole_layer;
  }
  // A fused norm runs again with its linear.
  if (module == pre_mlp_norm_module) {
    return repeated_by(has_own_pre_mlp_norm(p, kind) ? layernorm : mlp);
  }
  if (p.model.attention.mla && contains(up_projections, module)) return repeated_by(mla_up_proj);
  if (kind == LayerKind::dense) return contains(dense_mlp, module) ? repeated_by(mlp) : whole_layer;
  if (module == "expert activation") return repeated_by(moe_act);
  if (contains(of_shared_experts, module)) return repeated_by(shared_experts);
  return contains(of_routed_experts, module) ? repeated_by(moe) : whole_layer;
}

}  // namespace

RepeatSet repeated_by(RecomputeModule module) {
  using enum RecomputeModule;
  const bool inside = module == moe_act || module == shared_experts;
  return whole_layer | bit_of(module) | (inside ? bit_of(moe) : 0);
}

RepeatSet repeated_by(const Problem& problem, LayerKind kind, std::string_view module) {
  switch (problem.runtime.kind) {
    case Runtime::megatron:
      return of_megatron(problem, kind, module);
    case Runtime::fsdp2:
      return contains(titan_kept, module) ? whole_layer : whole_layer | titan_repeats;
    default:
      return whole_layer;
  }
}

RepeatSet repeats(const Problem& problem) {
  if (problem.layout.recompute == Recompute::none) return 0;
  if (problem.layout.recompute == Recompute::full || whole_layers(problem)) return whole_layer;
  switch (problem.runtime.kind) {
    case Runtime::megatron:
      return problem.runtime.megatron.recompute_modules;
    case Runtime::fsdp2:
      return titan_repeats;
    default:
      return 0;
  }
}

bool recomputes_layer(const Problem& problem, const LayerRange& chunk, std::int64_t layer) {
  if (problem.layout.recompute == Recompute::none) return false;
  const std::int64_t place = layer - chunk.first;
  if (whole_layers(problem)) return (place + 1) % problem.runtime.fsdp2.selective_ac_layers == 0;
  return place < first_recomputed(problem).value_or(place + 1);
}

bool drops(const Problem& problem, RecomputeModule module) {
  return problem.layout.recompute == Recompute::selective &&
         problem.runtime.kind == Runtime::megatron &&
         (problem.runtime.megatron.recompute_modules & repeated_by(module)) != 0;
}

bool has_own_input_norm(const Problem& problem) {
  return problem.runtime.megatron.local_layers() || problem.model.attention.mla;
}

bool has_own_pre_mlp_norm(const Problem& problem, LayerKind kind) {
  return problem.runtime.megatron.local_layers() || kind == LayerKind::moe;
}

bool has_own_norms(const Problem& problem) {
  return has_own_input_norm(problem) || problem.model.moe;
}

bool is_recomputed(const Problem& problem, LayerKind kind, std::string_view module) {
  return (repeats(problem) & repeated_by(problem, kind, module)) != 0;
}

std::int64_t recomputed_layers(const Problem& problem,
                               const LayerRange& chunk,
                               LayerKind kind,
                               std::int64_t count) {
  if (problem.layout.recompute == Recompute::none) return 0;
  if (whole_layers(problem)) {
    if (count == chunk.last - chunk.first) return count / problem.runtime.fsdp2.selective_ac_layers;
    std::int64_t recomputed = 0;
    for (std::int64_t i = chunk.first; i < chunk.last && count > 0; ++i) {
      recomputed += kind_of(problem.model, i) == kind && recomputes_layer(problem, chunk, i);
    }
    return recomputed;
  }
  const std::optional<std::int64_t> first = first_recomputed(problem);
  if (!first || chunk.first + *first >= chunk.last) return count;
  return layers_of_kind(problem.model, chunk.first, chunk.first + *first, kind);
}

std::int64_t recomputed_layers(const Problem& problem, const Stage& stage, LayerKind kind) {
  std::int64_t sum = 0;
  for (const LayerRange& chunk : stage.chunks) {
    const std::int64_t count = layers_of_kind(problem.model, chunk.first, chunk.last, kind);
    sum += recomputed_layers(problem, chunk, kind, count);
  }
  return sum;
}

}  // namespace zeroplan
