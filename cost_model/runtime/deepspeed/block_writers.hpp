#pragma once
// A block of a decoder as DeepSpeed runs it.

#include "cost_model/runtime/deepspeed/plan.hpp"
#include "cost_model/runtime/pytorch_layers/chain.hpp"

namespace zeroplan {

/// What of the plan's reductions stands in a layer's block: the highest, none, or the first and
/// the highest where it is the same layer's.
enum class LayerSort { reduces_highest, reduces_nothing, reduces_first };

LayerSort sort_of(const DeepspeedPlan& plan, std::int64_t layer);

/// The place's `sort`: a LayerSort.
Block write_deepspeed_block(const Problem& problem,
                            const WeightInventory& inventory,
                            const EagerCode& code,
                            const DeepspeedPlan& plan,
                            const EagerPlace& place);

}  // namespace zeroplan
