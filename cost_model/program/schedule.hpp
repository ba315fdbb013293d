#pragma once
// How much of a rank's order has to be played to know its memory.

#include <vector>

#include "cost_model/schedule/order.hpp"

namespace zeroplan {

/// Every pass of rank `rank` in one step of `micro_batches` micro-batches, in order.
std::vector<Pass> passes(const Problem& problem, std::int64_t rank, std::int64_t micro_batches);

/// As many micro-batches as rank `rank` needs to run before its memory repeats.
std::int64_t representative_micro_batches(const Problem& problem, std::int64_t rank);

/// The passes of rank `rank` in a step of only as many micro-batches as it takes until its memory
/// repeats.
std::vector<Pass> representative_passes(const Problem& problem, std::int64_t rank);

}  // namespace zeroplan
