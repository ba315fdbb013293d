#pragma once
// How much of a rank's order has to be played to know its memory.

#include <vector>

#include "cost_model/schedule/order.hpp"

namespace zeroplan {

/// Every pass of rank `rank` in one step of `micro_batches` micro-batches, in order.
std::vector<Pass> passes(const Problem& problem, std::int64_t rank, std::int64_t micro_batches);

/// Micro-batches x chunks of rank `rank` whose activations are alive together at its peak.
/// Sources: Megatron-Core core/pipeline_parallel/schedules.py (1F1B, interleaved); Qi et al. 2023
/// (arXiv 2401.10241) Table 2 and section 6 (zero-bubble); DeepSeek-V3 report Table 2 (DualPipe).
std::int64_t chunks_in_flight(const Problem& problem, std::int64_t rank);

/// As many micro-batches as rank `rank` needs to run before its memory repeats.
std::int64_t representative_micro_batches(const Problem& problem, std::int64_t rank);

/// The passes of rank `rank` in a step of only as many micro-batches as it takes until its memory
/// repeats.
std::vector<Pass> representative_passes(const Problem& problem, std::int64_t rank);

}  // namespace zeroplan
