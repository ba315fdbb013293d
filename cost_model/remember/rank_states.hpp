#pragma once
// What ZeRO, HSDP and offload decide of one pipeline stage: its model states and their exchange.

#include <tuple>

#include "cost_model/program/footprint.hpp"
#include "cost_model/question/inputs.hpp"
#include "cost_model/remember/sharding.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// What a stage with these layers keeps. It depends on the grid, sequence parallelism, ZeRO, HSDP,
/// offload, buckets, what is resharded and whether the loss runs the output layer in parts, and
/// then on whether GPipe does: not on micro-batches, nor on what they recompute, nor else on how
/// their passes are scheduled.
struct RankStates {
  // The sums of what is kept, in bytes:
  struct Sums {
    Bytes states;
    Bytes outside;  // communicators and context
    // On Megatron-Core alone:
    Bytes step;
    Bytes resident;
    Bytes construction;
    // Of both, what narrower sharding groups need not add to whole buckets of Megatron-FSDP.
    Bytes bucket_padding;
  };
  ModelStates states;
  Bytes communicators;
  // On Megatron-Core alone:
  MemoryBreakdown resident;  // the states with their buffers
  Footprint optimizer_step;  // above what is resident
  Moment construction;       // the highest before the first step, of all that is live
  Sums sums;
};

RankStates rank_states(const Problem& problem,
                       const WeightInventory& inventory,
                       const Stage& stage);

/// Whether the loss runs the output layer in parts, and then whether GPipe does.
std::int64_t parts_key(const Problem& problem);

/// What the states of a stage depend on beside its content.
using StateInputs = Inputs<&Layout::dp,
                           &Layout::tp,
                           &Layout::pp,
                           &Layout::cp,
                           &Layout::ep,
                           &Layout::etp,
                           &Layout::sequence_parallel,
                           &Layout::tp_overlap,
                           &Layout::hsdp,
                           &Layout::zero,
                           &Layout::offload,
                           &Layout::reduce_bucket,
                           &Layout::reshards_all,
                           &TrainingSpec::sequence_length,
                           &TrainingSpec::precision,
                           &TrainingSpec::optimizer>;
using StateKey = Numbers<21>;
inline StateKey state_key(const Problem& problem, const StageContent& content) {
  const StateInputs inputs(problem);
  return std::apply([&](auto... own) { return inputs.with(own..., parts_key(problem)); }, content);
}

/// What a stage's update depends on, beside sharding and content: a step's micro-batches too.
using GridInputs = Inputs<&Layout::dp,
                          &Layout::tp,
                          &Layout::pp,
                          &Layout::cp,
                          &Layout::ep,
                          &Layout::etp,
                          &Layout::sequence_parallel,
                          &Layout::tp_overlap,
                          &Layout::micro_batch,
                          &TrainingSpec::sequence_length,
                          &TrainingSpec::precision,
                          &TrainingSpec::optimizer,
                          &TrainingSpec::global_batch>;
using GridKey = Numbers<14>;
inline GridKey grid_key(const Problem& problem) {
  return GridInputs(problem).with(parts_key(problem));
}

}  // namespace zeroplan
