#pragma once
// Folding: a program as closed sums. A block's events become a footprint once; a step is then
// arithmetic over footprints.

#include "cost_model/program/in_flight_counts.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/program/stage_program.hpp"

namespace zeroplan {

/// All passes of one steady step above what is resident: their highest moment, and what they leave.
/// Does not read `program.resident` and `program.step`.
Footprint fold_passes(const StageProgram& program, const std::vector<Pass>& order);

/// What the passes of a chunk leave and need at most, in bytes.
ChunkBytes chunk_bytes(const ChunkProgram& chunk);

/// What the passes of these blocks leave and need at most, in bytes; `chunk`: where they stand.
ChunkBytes chunk_bytes(const ChunkProgram& chunk, const Runs& runs);
ChunkBytes chunk_bytes(const ChunkProgram& chunk, const RunsOfBytes& runs);

/// The highest moment of a step with these passes above `resident`, ended by the optimizer's step
/// and a checkpoint.
Moment highest_moment(const MemoryBreakdown& resident,
                      const Footprint& passes,
                      const Footprint& step,
                      const Footprint& checkpoint = {});

/// The bytes of a step's highest moment, without their categories.
Bytes highest_bytes(Bytes resident,
                    const PassBytes& passes,
                    const PassBytes& step,
                    const PassBytes& checkpoint = {});

/// The bytes of tensors by category: of what lives through every step.
MemoryBreakdown sum(const std::vector<TensorSpec>& tensors);

/// The highest moment of one steady step of a pipeline rank, by footprints of its chunks.
Moment fold_step(const StageProgram& program, const std::vector<Pass>& order);

/// What the blocks of a step send in which each chunk runs forward so many times, but for what
/// crosses between stages. Alike calls are one; the optimizer's are of the step.
std::vector<Call> fold_calls(const StageProgram& program, std::int64_t forward_passes);

/// What the blocks of a problem's step send (fold_calls), in the program that `stage` makes.
template <StageProgram (*stage)(const Problem&, const WeightInventory&, const Stage&)>
std::vector<Call> folded_calls(const Problem& problem,
                               const WeightInventory& inventory,
                               const Stage& own) {
  return fold_calls(stage(problem, inventory, own), forward_passes(problem));
}

}  // namespace zeroplan
