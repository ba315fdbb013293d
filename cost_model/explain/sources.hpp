#pragma once
// Where each row of a breakdown comes from: paper and equation, or repository and file.

#include <string_view>

#include "cost_model/question/problem.hpp"
#include "cost_model/states/breakdown.hpp"

namespace zeroplan {

/// The source of a row for this problem's runtime.
std::string_view source_of(const Problem& problem, Category row);

/// The source of what a rank sends for model and data, and of the FLOPs.
std::string_view source_of_communication(const Problem& problem);
std::string_view source_of_flops();

}  // namespace zeroplan
