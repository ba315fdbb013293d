#pragma once
// What a tracker of tensors sees of a prediction.

#include "cost_model/answer/estimate.hpp"

namespace zeroplan::tests {

/// MiB that the first stage allocates at its peak, but for workspaces: no tensor tells of these.
inline double tracked_mib(const Problem& p) {
  const MemoryBreakdown memory = estimate(p, Evaluator(p)).stages.front().memory;
  const Bytes tracked = memory.allocated() - memory[Category::workspace];
  return static_cast<double>(tracked.count()) / mebi;
}

}  // namespace zeroplan::tests
