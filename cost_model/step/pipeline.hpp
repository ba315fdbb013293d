#pragma once
// How long the passes of all pipeline ranks take together: the schedule as a graph of operations.

#include <vector>

#include "cost_model/schedule/order.hpp"
#include "cost_model/step/stage_time.hpp"

namespace zeroplan {

/// One pipeline rank in a step, in seconds.
struct RankTime {
  double finished = 0;  // when its last pass ends
  double busy = 0;
  double slack = 0;  // how late any one of its passes may be without making the step late
};

struct PipelineTime {
  double seconds = 0;  // until the last rank has finished
  std::vector<RankTime> ranks;
};

/// `ends`: without slack, which takes a graph of all passes and many times as long.
enum class PipelineDetail { ends, slack };

/// Runs the passes of a legal layout's schedule: each rank in its order, each pass after those
/// whose results it reads, `message` seconds after them where they are on another rank. `ranks`:
/// the passes of each pipeline rank. Long steps are run until they repeat.
PipelineTime simulate_pipeline(const Problem& problem,
                               const std::vector<StageTime>& ranks,
                               double message,
                               PipelineDetail detail = PipelineDetail::slack);

}  // namespace zeroplan
