// What does torchtitan's recompute repeat? Front doors: fsdp2_repeats, fsdp2_repeated_layers.
//
// Source: distributed/activation_checkpoint.py.
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/fsdp2/code.hpp"

namespace zeroplan {

RepeatSet fsdp2_repeats(const Problem&) {
  return titan_repeats;
}

RepeatedLayers fsdp2_repeated_layers(const Problem& p) {
  const Fsdp2Settings& set = p.runtime.fsdp2;
  if (p.layout.recompute == Recompute::selective && set.selective_ac_layers > 0) {
    return {.every = set.selective_ac_layers};
  }
  if (set.recompute_num_layers == 0) return {};
  return {.first = set.recompute_num_layers, .others = set.selective_rest ? titan_repeats : 0};
}

}  // namespace zeroplan
