// What does recompute repeat? Front door: is_recomputed.
#include "cost_model/time/recomputed.hpp"

#include <algorithm>
#include <array>

namespace zeroplan {
namespace {

constexpr std::array<std::string_view, 3> dense_mlp{"fc1", "fc2", "activation"};

// torchtitan keeps the first, third, fifth and seventh product of a llama layer, and attention.
constexpr std::array<std::string_view, 5> titan_kept{"q_proj", "v_proj", "gate_proj", "down_proj",
                                                     core_attention_module};

bool contains(const auto& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

bool megatron_repeats(const MegatronSettings& set, LayerKind kind, std::string_view module) {
  const auto chosen = [&](RecomputeModule m) {
    return (set.recompute_modules >> static_cast<unsigned>(m) & 1U) != 0;
  };
  if (module == core_attention_module) return chosen(RecomputeModule::core_attn);
  if (module == "norm") return chosen(RecomputeModule::layernorm);
  if (module == "expert activation") return chosen(RecomputeModule::moe_act);
  return kind == LayerKind::dense && contains(dense_mlp, module) && chosen(RecomputeModule::mlp);
}

}  // namespace

bool is_recomputed(const Problem& problem, LayerKind kind, std::string_view module) {
  if (problem.layout.recompute != Recompute::selective) {
    return problem.layout.recompute == Recompute::full;
  }
  if (problem.runtime.kind == Runtime::megatron) {
    return megatron_repeats(problem.runtime.megatron, kind, module);
  }
  return problem.runtime.kind == Runtime::fsdp2 && !contains(titan_kept, module);
}

}  // namespace zeroplan
