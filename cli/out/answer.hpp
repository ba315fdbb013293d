#pragma once
// From what was typed to the answer of fit: the first step of every command about one layout.

#include "cli/request/arguments.hpp"
#include "planner/fit.hpp"

namespace zeroplan {

/// Reads the request, chooses what it leaves open, and notes what was assumed in reading. Throws
/// InputError where nothing can be executed, with the nearest that can.
FitAnswer answer_of(const LayoutArguments& arguments);

/// The stage that --stage names, or the worst. Throws InputError when there is none of this number.
std::size_t stage_of(const std::optional<std::string>& asked, const Estimate& estimate);

}  // namespace zeroplan
