#pragma once
// ZeRO++ hpZ: DeepSpeed's second copy of the parameters at stage 3, which backward passes gather.

#include <algorithm>

#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// Ranks that the copy is divided over: at most all there are (DeepSpeed @edaa72212
/// utils/groups.py). 1: there is no copy.
inline std::int64_t secondary_ranks(const Problem& problem) {
  const std::int64_t asked = problem.runtime.deepspeed.hpz_partition_size;
  return std::clamp<std::int64_t>(asked, 1, world_size(problem.layout));
}

}  // namespace zeroplan
