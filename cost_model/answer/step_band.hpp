#pragma once
// How far the predicted step may be off.

#include "cost_model/question/problem.hpp"
#include "cost_model/question/runtime_code.hpp"

namespace zeroplan {

/// From runs that no fit had seen, where there are any.
inline StepBand step_band(const Problem& problem) {
  return code_of(problem).step_band(problem);
}

}  // namespace zeroplan
