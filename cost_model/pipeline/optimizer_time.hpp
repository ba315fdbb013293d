#pragma once
// How long the optimizer takes to update what one rank holds.

#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// Seconds between the last gradient and the updated parameters, communication not counted: bytes
/// that each element makes the kernels of norm, update and casts move, over the HBM rate of
/// streaming. Muon's matrix products (Newton-Schulz) are not timed. `elements`: of a stage; the
/// optimizer updates its shards, or all of them where nothing is sharded. Beside it, what
/// nanotron's Python takes for the stage's tensors. Where DeepSpeed offloads the optimizer, the
/// host's time.
double optimizer_seconds(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage,
                         const StageElements& elements);

}  // namespace zeroplan
