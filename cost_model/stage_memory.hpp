#pragma once
// Memory of one pipeline stage at the highest moment of the step.

#include <string_view>

#include "cost_model/memory/breakdown.hpp"
#include "cost_model/memory/model_states.hpp"
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
  ModelStates states;
};

/// The breakdown of rank `index` of the pipeline at its own peak: of the folded step program where
/// there is one; else the highest of loss (where the stage holds the head), start of the backward
/// pass, and optimizer step.
StageMemory stage_memory(const Problem& problem,
                         const Remembered& remembered,
                         const Stage& stage,
                         std::int64_t index);

/// Replays the first steps of a stage's program through the caching allocator and sets
/// fragmentation and unsplit_blocks by what it held; stage_memory takes the median of published
/// Megatron-Core runs instead.
void play_allocator(const Problem& problem,
                    const Remembered& remembered,
                    const Stage& stage,
                    StageMemory& memory);

}  // namespace zeroplan
