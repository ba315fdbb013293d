#pragma once
// A block of a decoder as DeepSpeed runs it.

#include "cost_model/runtime/deepspeed/plan.hpp"
#include "cost_model/runtime/pytorch_layers/chain.hpp"

namespace zeroplan {

/// What of the plan stands in a layer's block.
struct LayerSort {
  /// The highest reduction, none, or the first and the highest where it is the same layer's.
  enum Reduces { highest, nothing, first } reduces = nothing;
  bool gathers_ahead = false;  // in the forward pass

  static LayerSort at(const DeepspeedPlan& plan, std::int64_t layer);
  static LayerSort at(const EagerPlace& place);
  int number() const;  // EagerPlace's sort
};

Block write_deepspeed_block(const Problem& problem,
                            const WeightInventory& inventory,
                            const EagerCode& code,
                            const DeepspeedPlan& plan,
                            const EagerPlace& place);

}  // namespace zeroplan
