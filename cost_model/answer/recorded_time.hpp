#pragma once
// How long a rank whose step was recorded is busy.

#include "cost_model/pipeline/stage_time.hpp"
#include "cost_model/remember/evaluator.hpp"

namespace zeroplan {

/// What the kernels and calls in the program of a recorded rank take. A call on a stream of its own
/// travels beside its pass (Beside::pass); the others are waited for. Passes are taken to be alike.
StageTime recorded_stage_time(const Problem& problem, const Evaluator& evaluator);

}  // namespace zeroplan
