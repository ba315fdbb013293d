#pragma once
// The predicted step of a rank, as what its time goes to.

#include "cost_model/answer/step_streams.hpp"
#include "validator/overlay/step_work.hpp"

namespace zeroplan {

/// From the kernels and calls that timeline shows, and the loads of the answer. Where a step has
/// many micro-batches some are played, and their kernels are counted for all. `time` is the step
/// time of the same problem. What of collectives is exposed is measured on its streams, as that of
/// a trace is; idle is what is left of the step: gaps, bubble, waiting for the host and for slower
/// ranks.
StepWork predicted_step(const Problem& problem,
                        const Evaluator& evaluator,
                        const StepTime& time,
                        std::int64_t stage);

}  // namespace zeroplan
