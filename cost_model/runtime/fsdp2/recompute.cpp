// What does torchtitan's recompute repeat? Front door: fsdp2_repeats.
//
// Source: distributed/activation_checkpoint.py.
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/fsdp2/code.hpp"

namespace zeroplan {

RepeatSet fsdp2_repeats(const Problem&) {
  return titan_repeats;
}

RepeatedLayers fsdp2_repeated_layers(const Problem& p) {
  if (p.layout.recompute != Recompute::selective) return {};
  return {.every = p.runtime.fsdp2.selective_ac_layers};
}

}  // namespace zeroplan
