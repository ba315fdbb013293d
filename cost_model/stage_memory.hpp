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
  std::string_view tensor;  // what is largest among the tensors that make this moment the highest
  MemoryBreakdown memory;
  ModelStates states;
};

/// The breakdown of rank `index` of the pipeline at its own peak: the highest of loss (where the
/// stage holds the head), start of the backward pass, and optimizer step.
StageMemory stage_memory(const Problem& problem,
                         const Remembered& remembered,
                         const Stage& stage,
                         std::int64_t index);

/// What the caching allocator holds beyond the folded bytes of a Megatron-Core stage, by replaying
/// its first steps; the median of published runs is what stage_memory takes instead.
Bytes played_fragmentation(const Problem& problem,
                           const Remembered& remembered,
                           const Stage& stage,
                           const StageMemory& folded);

/// Largest reserved over allocated bytes of the same published runs.
inline constexpr double most_fragmentation = 0.093;

}  // namespace zeroplan
