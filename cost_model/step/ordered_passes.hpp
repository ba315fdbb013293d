#pragma once
// Private to the pipeline: when the passes of all ranks end, by running each rank's list as far as
// the others allow.

#include "cost_model/step/pipeline.hpp"

namespace zeroplan {

/// The ends and the busy seconds that the graph of the same passes gives, to the last digit,
/// without slack. `blocking`: a rank that has finished a pass waits until its neighbours have its
/// result and it has theirs.
PipelineTime run_in_order(const Pipeline& pipeline,
                          const std::vector<StageTime>& ranks,
                          double message,
                          bool blocking);

}  // namespace zeroplan
