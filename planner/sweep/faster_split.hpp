#pragma once
// Would another split of a plan's layers be faster?

#include "cost_model/remember/evaluator.hpp"
#include "planner/partition.hpp"

namespace zeroplan {

struct FasterSplit {
  Partition partition;
  double slowest_now = 0;  // seconds of the plan's own slowest stage

  /// Part of the slowest stage's time that the split saves.
  double saved() const { return 1 - partition.slowest / slowest_now; }
};

/// The split of the layers to the plan's ranks that makes the slowest stage fastest, forward and
/// backward over one micro-batch, among those whose stages fit with their band. Whether the runtime
/// can be told to split so is not asked. None where it saves less than 1 %, and for ranks with
/// several chunks.
std::optional<FasterSplit> faster_split(const Problem& plan, const Evaluator& evaluator);

}  // namespace zeroplan
