#pragma once
// What ZeRO, HSDP and offload decide of one pipeline stage: its model states and their exchange.

#include <array>
#include <optional>

#include "cost_model/memory/model_states.hpp"
#include "cost_model/numbers.hpp"
#include "cost_model/program/footprint.hpp"
#include "cost_model/step/stage_time.hpp"

namespace zeroplan {

/// Of a stage with these layers it depends on the grid, the micro-batches of a step, sequence
/// parallelism, those three, buckets, what is resharded and whether the loss runs the output layer
/// in parts: not on how the passes are scheduled or what they recompute.
struct StateShare {
  ModelStates states;
  Bytes communicators;
  // Of Megatron-Core:
  MemoryBreakdown resident;  // the states with their buffers
  Footprint optimizer_step;  // above what is resident
  Moment construction;       // the highest before the first step, of all that is live
  // In bytes:
  Bytes resident_bytes;
  Bytes step_bytes;
  Bytes construction_bytes;
  // When asked for:
  std::optional<StageUpdate> update;
  std::array<std::optional<UpdateLoads>, 3> loads;  // by Overlap
};

StateShare state_share(const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage);

/// What it depends on, of stages of one model in one runtime with its settings.
using StateKey = Numbers<17>;

StateKey state_key(const Problem& problem, const Stage& stage);

}  // namespace zeroplan
