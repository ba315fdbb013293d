#pragma once
// Which micro-batches of a plan's step are traced.

#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// The plan with as few micro-batches as show all that a step holds: three without a pipeline (the
/// first, one like all others, and the last, which reduces gradients), three a stage with one. A
/// tracer takes seconds for each. The plan itself where it has no more, or where other bytes are
/// predicted of fewer for a stage, as under GPipe, which keeps all.
Problem traced_plan(const Problem& plan);

}  // namespace zeroplan
