#pragma once
// Memory of one pipeline stage at the highest moment of the step.

#include <string_view>

#include "cost_model/host_memory.hpp"
#include "cost_model/memory/breakdown.hpp"
#include "cost_model/memory/model_states.hpp"
#include "cost_model/program/timeline.hpp"
#include "cost_model/remembered.hpp"

namespace zeroplan {

struct StageMemory {
  std::int64_t stage = 0;
  std::int64_t layers = 0;
  Phase phase = Phase::backward;
  std::string_view tensor;  // the allocation that reached the peak
  MemoryBreakdown memory;
  Bytes unsplit_blocks;  // of fragmentation, what torch.cuda.memory_allocated counts: blocks larger
                         // than asked
  bool replayed = false;  // fragmentation is the allocator's, not the median of other runs
  ModelStates states;
  HostMemory host;  // of this rank, not among the device's bytes
};

/// The tensors that are the categories up to workspace of stage_memory, category by category, byte
/// for byte: of the played step program where there is one; else the terms of the closed form.
std::vector<LiveTensors> live_tensors(const Problem& problem,
                                      const Remembered& remembered,
                                      const Stage& stage,
                                      std::int64_t index);

/// The breakdown of rank `index` of the pipeline at its own peak: of the folded step program where
/// there is one; else the highest of loss (where the stage holds the head), start of the backward
/// pass, and optimizer step.
StageMemory stage_memory(const Problem& problem,
                         const Remembered& remembered,
                         const Stage& stage,
                         std::int64_t index);

/// Those figures of stage_memory that a verdict needs.
struct StageBytes {
  Bytes reserved;
  Bytes outside;      // communicators and context
  Bytes activations;  // not on Megatron-Core, whose band does not read it
  Bytes states;

  Bytes device() const { return reserved + outside; }
};

StageBytes stage_bytes(const StageMemory& memory);

/// The same of rank `index` of the problem's own stages; on Megatron-Core without the rest.
StageBytes stage_bytes(const Problem& problem, const Remembered& remembered, std::size_t index);

/// What the allocator usually wastes on this many allocated bytes, before it is replayed; nothing
/// in the paper's arithmetic.
Bytes usual_fragmentation(const Problem& problem, Bytes allocated);

/// Replays the first steps of a stage's program through the caching allocator and sets
/// fragmentation and unsplit_blocks by what it held; stage_memory takes the median of published
/// Megatron-Core runs instead.
void play_allocator(const Problem& problem,
                    const Remembered& remembered,
                    const Stage& stage,
                    StageMemory& memory);

/// What the stage reserves in a run that resumes from a checkpoint: its moments lie below the
/// activations instead of where the first step left room.
Bytes resumed_reserved(const Problem& problem,
                       const Remembered& remembered,
                       const Stage& stage,
                       std::int64_t index);

}  // namespace zeroplan
