// What does torchtitan's recompute repeat? Front door: fsdp2_repeated_by.
//
// Source: distributed/activation_checkpoint.py.
#include <algorithm>
#include <array>

#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/fsdp2/code.hpp"

namespace zeroplan {
namespace {

// The first, third, fifth and seventh product of a llama layer, and attention.
constexpr std::array<std::string_view, 5> kept{"q_proj", "v_proj", "gate_proj", "down_proj",
                                               core_attention_module};

}  // namespace

RepeatSet fsdp2_repeated_by(const Problem&, LayerKind, std::string_view module) {
  const bool is_kept = std::ranges::find(kept, module) != kept.end();
  return is_kept ? whole_layer : whole_layer | titan_repeats;
}

RepeatSet fsdp2_repeats(const Problem&) {
  return titan_repeats;
}

RepeatedLayers fsdp2_repeated_layers(const Problem& p) {
  if (p.layout.recompute != Recompute::selective) return {};
  return {.every = p.runtime.fsdp2.selective_ac_layers};
}

}  // namespace zeroplan
