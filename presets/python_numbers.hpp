#pragma once
// Numbers that Python writes into JSON, which has no such.

#include <string>
#include <string_view>

namespace zeroplan {

/// The text with null where Python wrote a number that JSON has not (Infinity, NaN), as of a state
/// space's time_step_limit; what stands in quotes is as it was.
std::string without_infinities(std::string_view text);

}  // namespace zeroplan
