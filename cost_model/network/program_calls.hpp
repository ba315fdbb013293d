#pragma once
// What the programs of those runtimes send that write it down.

#include "cost_model/network/layer_collectives.hpp"
#include "cost_model/program/block.hpp"

namespace zeroplan {

/// Whether the runtime's program has its calls.
bool has_calls(const Problem& problem);

/// Those of a step of one stage, but for what crosses between stages.
std::vector<Call> step_calls(const Problem& problem,
                             const WeightInventory& inventory,
                             const Stage& stage);

/// Those of one micro-batch and one block of such a runtime, without what holds its states.
std::vector<BlockCall> block_calls(const Problem& problem,
                                   const WeightInventory& inventory,
                                   BlockKind block,
                                   LayerKind layer = LayerKind::dense,
                                   LayerPart part = LayerPart::whole);

}  // namespace zeroplan
