#pragma once
// How long the optimizer takes to update what one rank holds.

#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// How a runtime updates, where runtimes differ.
struct UpdateHabits {
  bool on_host = false;          // the optimizer's states, and so its step
  std::int64_t clip_passes = 1;  // over the gradients, to take their norm and to scale them
  bool clips_all = false;        // also those that other ranks update
  bool rereads_master = false;   // the master copy once more, to narrow it
  double host_seconds = 0;       // of the Python that launches it
};

/// The habits of a runtime that takes the norm of what it updates, on the GPU.
UpdateHabits updates_plainly(const Problem& problem,
                             const WeightInventory& inventory,
                             const Stage& stage);

/// Seconds between the last gradient and the updated parameters, communication not counted: bytes
/// that each element makes the kernels of norm, update and casts move, over the HBM rate of
/// streaming. Muon's matrix products (Newton-Schulz) are not timed. `elements`: of a stage; the
/// optimizer updates its shards, or all of them where nothing is sharded. Beside it, what
/// the runtime's Python takes for the stage's tensors. Where the optimizer is offloaded, the host's
/// time, if the runtime's is known.
double optimizer_seconds(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage,
                         const StageElements& elements);

}  // namespace zeroplan
