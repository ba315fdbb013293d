// What does Megatron-Core's recompute repeat? Front door: megatron_repeats.
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/megatron/code.hpp"

namespace zeroplan {

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
