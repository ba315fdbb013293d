#pragma once
// What a person probably meant by a name that does not exist.

#include <span>
#include <string>
#include <string_view>

namespace zeroplan {

/// The text in lower case, ASCII letters only: names match whatever their case.
std::string lower_case(std::string_view text);

/// The text in single quotes, fit for a one-line message: control characters become '?', long text
/// is cut.
std::string in_quotes(std::string_view text);

/// How many insertions, removals, replacements or swaps of neighbours make `b` of `a`, whatever
/// their case. Source: Damerau 1964, in its restricted form (no letter is edited twice).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate with the least edit distance, a name cut short being nearer than a misspelled one;
/// of several the nearest in length, then the first. Empty without candidates.
std::string nearest(std::string_view name, std::span<const std::string> candidates);

}  // namespace zeroplan
