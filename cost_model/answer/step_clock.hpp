#pragma once
// When a rank does what in a step.

#include "cost_model/answer/step_time.hpp"

namespace zeroplan {

/// Seconds from the start of the step, by prediction.
struct RankClock {
  std::vector<TimedPass> passes;  // in the rank's order
  double reduced = 0;             // when the gradients of all ranks are: the optimizer may begin
  double updated = 0;             // when this rank's optimizer is done
  double gathered = 0;            // when this rank's parameters are back

  double passed() const { return passes.empty() ? 0 : passes.back().end; }
};

/// The clock of a rank in a step of so many micro-batches; `time` is the step time of the same
/// problem. With as many micro-batches as the step has, the last rank ends with it.
RankClock rank_clock(const Problem& problem,
                     const StepTime& time,
                     std::int64_t rank,
                     std::int64_t micro_batches);

}  // namespace zeroplan
