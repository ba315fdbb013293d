#pragma once
// What ZeRO, HSDP and offload decide of one pipeline stage: its model states and their exchange.

#include <array>
#include <optional>

#include "cost_model/exchange.hpp"
#include "cost_model/memory/model_states.hpp"
#include "cost_model/numbers.hpp"
#include "cost_model/program/footprint.hpp"
#include "cost_model/step/stage_time.hpp"

namespace zeroplan {

/// What a stage with these layers keeps. It depends on the grid, sequence parallelism, those three,
/// buckets, what is resharded and whether the loss runs the output layer in parts: not on
/// micro-batches, nor on how their passes are scheduled or what they recompute.
struct StateShare {
  ModelStates states;
  Bytes communicators;
  // Of Megatron-Core:
  MemoryBreakdown resident;  // the states with their buffers
  Footprint optimizer_step;  // above what is resident
  Moment construction;       // the highest before the first step, of all that is live
  // In bytes:
  Bytes state_bytes;    // of every runtime
  Bytes outside_bytes;  // the same: communicators and context
  Bytes resident_bytes;
  Bytes step_bytes;
  Bytes construction_bytes;
};

/// The same with how they are exchanged, which depends on the micro-batches of a step too.
struct UpdateShare {
  const StateShare* states = nullptr;
  // When asked for:
  std::array<std::optional<UpdateLoads>, 3> loads;  // by Overlap
  std::optional<StageUpdate> update;
};

StateShare state_share(const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage);

/// What they read of a stage: how many layers of which kind it holds, and which ends of the model.
using StageContent = Numbers<3>;
StageContent content_of(const ModelSpec& model, const Stage& stage);

/// What the one and the other depend on, of stages of one model in one runtime with its settings.
using StateKey = Numbers<15>;
using UpdateKey = Numbers<17>;

StateKey state_key(const Problem& problem, const Exchange& exchange, const StageContent& content);
UpdateKey update_key(const Problem& problem, const Exchange& exchange, const StageContent& content);

}  // namespace zeroplan
