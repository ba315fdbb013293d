#pragma once
// What a person probably meant by a name that does not exist.

#include <span>
#include <string>
#include <string_view>

namespace zeroplan {

/// The text in lower case, ASCII letters only: names match whatever their case.
std::string lower_case(std::string_view text);

/// The text as it may go to a terminal or into a document: control characters, and bytes that are
/// not UTF-8, become '?'.
std::string printable(std::string_view text);

/// The text with '?' for each byte that is not UTF-8, and else as it is.
std::string as_utf8(std::string_view text);

/// The text in single quotes, fit for a one-line message: printable, and cut where it
/// is long.
std::string in_quotes(std::string_view text);

/// How many insertions, removals, replacements or swaps of neighbours make `b` of `a`, whatever
/// their case. Source: Damerau 1964, in its restricted form (no letter is edited twice).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The text in lower case with every sign between words as a dash: llama3:70b and Llama3_70b are
/// both llama3-70b.
std::string plain_name(std::string_view text);

/// The candidate with the least edit distance, a name cut short being nearer than a misspelled one;
/// of several one that keeps all that was typed, then the nearest in length, then the first. Empty
/// without candidates.
std::string nearest(std::string_view name, std::span<const std::string> candidates);

/// What `nearest` gives where it may have been meant: a third of the letters differ at most. Else
/// empty.
std::string near_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace zeroplan
