#pragma once
// What ZeRO, HSDP and offload decide of one pipeline stage: its model states and their exchange.

#include "cost_model/program/footprint.hpp"
#include "cost_model/question/numbers.hpp"
#include "cost_model/remember/exchange.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// What a stage with these layers keeps. It depends on the grid, sequence parallelism, those three,
/// buckets, what is resharded and whether the loss runs the output layer in parts, and then on
/// whether GPipe does: not on micro-batches, nor on what they recompute, nor else on how their
/// passes are scheduled.
struct StateShare {
  // In bytes:
  struct Sums {
    Bytes states;
    Bytes outside;  // communicators and context
    // Of Megatron-Core:
    Bytes resident;
    Bytes step;
    Bytes construction;
  };
  ModelStates states;
  Bytes communicators;
  // Of Megatron-Core:
  MemoryBreakdown resident;  // the states with their buffers
  Footprint optimizer_step;  // above what is resident
  Moment construction;       // the highest before the first step, of all that is live
  Sums sums;
};

StateShare state_share(const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage);

/// What they read of a stage: how many layers of which kind it holds, and which ends of the model.
using StageContent = Numbers<3>;
StageContent content_of(const ModelSpec& model, const Stage& stage);

/// What a share depends on, of stages of one model in one runtime with its settings.
using StateKey = Numbers<15>;
StateKey state_key(const Problem& problem, const Exchange& exchange, const StageContent& content);

/// What their update depends on too, beside exchange and content: the micro-batches of a step.
using GridKey = Numbers<17>;
GridKey grid_key(const Problem& problem);

}  // namespace zeroplan
