#pragma once
// Private to the page: command lines to type again.

#include <string>
#include <string_view>

#include "cli/request/arguments.hpp"
#include "planner/fit.hpp"

namespace zeroplan {

/// `zeroplan COMMAND MODEL ...` with every option of the question that was typed.
std::string typed_line(std::string_view command, const LayoutArguments& asked);

/// `zeroplan sweep ...` or `zeroplan compare ...` with every option of the search, or of the sides
/// of the comparison, that was typed.
std::string typed_line(const SweepArguments& asked);
std::string typed_line(const CompareArguments& asked);

/// ` --tokens ... --price ...` as typed.
std::string typed_cost(const CostArguments& asked);

/// `zeroplan fit` of exactly this plan, whatever is chosen by default.
std::string command_of(const FitAnswer& answer, const LayoutArguments& asked);

}  // namespace zeroplan
