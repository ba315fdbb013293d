#pragma once
// What no completion of a node can be below, in time and in memory: the bounds of branch and bound.
// Admissible means: never above what the evaluation itself returns.

#include "cost_model/remembered.hpp"
#include "cost_model/step/stage_time.hpp"
#include "planner/sweep/axis.hpp"

namespace zeroplan {

/// Bytes that every layout below the node needs on some stage: parameters, gradients and optimizer
/// states with the most sharding and offload that are still open; on Megatron-Core's first stage
/// what its layers keep of the micro-batches in flight; what the allocator usually wastes on these;
/// communicators and CUDA context. Nothing for buffers and what comes and goes. A worst stage needs
/// at least what any one stage does, and wider groups leave smaller shards, padding apart, which is
/// subtracted.
Bytes memory_floor(const SearchSpace& space, const Problem& node, const Remembered& remembered);

/// Seconds that every layout below the node needs: each rank runs all its passes one after the
/// other, with the collectives that nothing hides, and under a pipeline the first of a rank waits
/// for the ranks before it, which after its last still have theirs to do. Gradients, parameters and
/// the optimizer take no time. Narayanan et al. 2021, section 2.2, without assuming equal stages.
double time_floor(const Problem& node);

/// Seconds that a point needs beyond its node's time floor: what the first stage, whose last
/// backward pass ends no earlier than that, still waits for gradients and parameters and updates
/// them. Nothing under schedules whose first stage may be done before others.
double update_floor(const Problem& point, const Remembered& remembered);

}  // namespace zeroplan
