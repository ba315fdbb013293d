#pragma once
// How long the passes of all pipeline ranks take together: the schedule as a graph of operations.

#include <vector>

#include "cost_model/pipeline/stage_time.hpp"
#include "cost_model/question/problem.hpp"
#include "cost_model/schedule/pass.hpp"

namespace zeroplan {

/// One pipeline rank in a step, in seconds.
struct RankTime {
  double finished = 0;  // when its last pass ends
  double busy = 0;
  double slack = 0;  // how late any one of its passes may be without making the step late
};

struct PipelineTime {
  double seconds = 0;   // until the last rank has finished
  double messages = 0;  // of them, what there would not be if messages took no time
  std::vector<RankTime> ranks;
};

/// A pass, and when it runs: seconds from the start of the step.
struct TimedPass {
  Pass pass;
  double start = 0;
  double end = 0;
};

/// When each pass of a step of so many micro-batches runs, rank by rank in its order, as
/// simulate_pipeline runs them.
std::vector<std::vector<TimedPass>> timed_passes(const Problem& problem,
                                                 const std::vector<StageTime>& ranks,
                                                 double message,
                                                 std::int64_t micro_batches);

/// Runs the passes of a legal layout's schedule: each rank in its order, each pass after those
/// whose results it reads, `message` seconds after them where they are on another rank. `ranks`:
/// the passes of each pipeline rank. Long steps are run until they repeat.
PipelineTime simulate_pipeline(const Problem& problem,
                               const std::vector<StageTime>& ranks,
                               double message);

}  // namespace zeroplan
