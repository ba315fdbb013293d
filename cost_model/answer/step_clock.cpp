// When does a rank do what? Front door: rank_clock.
#include "cost_model/answer/step_clock.hpp"

#include <algorithm>

#include "cost_model/pipeline/messages.hpp"

namespace zeroplan {

RankClock rank_clock(const Problem& problem,
                     const StepTime& time,
                     std::int64_t rank,
                     std::int64_t micro_batches) {
  const auto own = static_cast<std::size_t>(rank);
  auto passes = timed_passes(problem, time.stages, message_seconds(problem), micro_batches);
  RankClock clock;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    if (passes[i].empty()) continue;
    clock.reduced = std::max(clock.reduced, passes[i].back().end + time.stages[i].reductions);
  }
  clock.passes = std::move(passes[own]);
  clock.updated = clock.reduced + time.stages[own].optimizer;
  clock.gathered = clock.updated + time.stages[own].gathers;
  const double slower = 1 + straggling_part(problem.cluster);
  for (TimedPass& pass : clock.passes) {
    pass.start *= slower;
    pass.end *= slower;
  }
  for (double* moment : {&clock.reduced, &clock.updated, &clock.gathered}) *moment *= slower;
  return clock;
}

}  // namespace zeroplan
