#pragma once
// Both sides of a comparison, with what neither of them gives chosen once.

#include <string_view>

#include "cli/compare/compare_report.hpp"
#include "cli/request/arguments.hpp"

namespace zeroplan {

struct Side {
  std::string_view label;  // opens what is said of it
  LayoutArguments question;
};

/// The answers to two questions. Where both ask about the same model, GPUs and runtime, what
/// neither gives is chosen for one of them and taken for the other: for a, unless b's choice lets
/// more of the two be executed and fit. Where no choice can be shared, or `each`, every side
/// chooses for itself. Throws InputError naming the side that cannot be executed.
Comparison answer_both(const Side& a, const Side& b, bool each);

/// The answers to the two sides that were typed; `common` is what both say, and is given the model
/// and, where that is read from standard input, its text. Throws InputError where not two sides are
/// typed.
Comparison compared(const CompareArguments& arguments, LayoutArguments& common);

}  // namespace zeroplan
