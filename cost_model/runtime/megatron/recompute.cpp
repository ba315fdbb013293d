// What does Megatron-Core's recompute repeat? Front door: megatron_repeated_by.
#include <algorithm>
#include <array>

#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/megatron/code.hpp"

namespace zeroplan {
namespace {

constexpr std::array<std::string_view, 3> dense_mlp{"fc1", "fc2", "activation"};
constexpr std::array<std::string_view, 5> up_projections{"q", "q_up", "kv_up", "rotary",
                                                         latent_norm_module};
constexpr std::array<std::string_view, 4> of_shared_experts{"shared_fc1", "shared_fc2",
                                                            "shared_activation", "shared_gate"};
constexpr std::array<std::string_view, 7> of_routed_experts{
    "router", "permute", "sort by expert", "fc1", "fc2", "expert activation", "expert bias"};

bool contains(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

RepeatSet megatron_repeated_by(const Problem& p, LayerKind kind, std::string_view module) {
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

RepeatSet megatron_repeats(const Problem& p) {
  return p.runtime.megatron.recompute_modules;
}

// Block recompute takes the layers at the beginning of each chunk.
RepeatedLayers megatron_repeated_layers(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  const bool block = p.layout.recompute == Recompute::full && set.recompute_num_layers > 0 &&
                     set.recompute_method == RecomputeMethod::block;
  if (!block) return {};
  return {.first = set.recompute_num_layers};
}

}  // namespace zeroplan
