#pragma once
// What a rank of some runtime did in one steady step, as it was recorded, and the same as the
// program that memory, traffic and time are folded from.

#include <deque>
#include <string>
#include <vector>

#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

/// All groups of one name, as RankGroup (network/rank_groups.hpp).
struct RecordedGroup {
  std::string_view name;
  std::int64_t ranks = 1;
  std::int64_t stride = 1;
};

/// Without a pipeline. Every tensor has a slot while it lives; a free slot may be taken again. Each
/// event allocates or frees a slot, calls, operates, or begins a phase, by its index.
struct RecordedProgram {
  std::string runtime;    // who ran, with versions: "torchtitan 0.3.0, torch 2.14.1"
  std::int64_t rank = 0;  // that was recorded
  bool expandable_segments = false;
  std::deque<std::string> names;  // that all below refer to
  std::vector<RecordedGroup> groups;
  std::vector<TensorSpec> slots;  // bytes as the allocator rounds them
  std::vector<Call> calls;        // `during` is of no meaning
  std::vector<Operator> operators;
  std::vector<std::int32_t> resident;      // slots that are taken when the step begins
  std::vector<std::vector<Event>> passes;  // of each micro-batch the forward and the backward one
  std::vector<Event> step;                 // the optimizer's

  std::int64_t micro_batches() const { return std::ssize(passes) / 2; }
};

/// The program of the rank's one stage, a block a micro-batch. What the step leaves in other slots
/// than it found is freed at its end, and what it found and freed was made at its beginning, so
/// that steps repeat. Assumes that slots are taken and freed in turn. Refers to `recorded`.
StageProgram program_of(const RecordedProgram& recorded);

/// What of it lives through the whole step, as model states.
ModelStates states_of(const RecordedProgram& recorded);

}  // namespace zeroplan
