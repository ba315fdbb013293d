#pragma once
// Lists of ones and zeros as Megatron-LM's arguments write them.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zeroplan {

/// The list that an expression of Python is: sums of lists and of terms in brackets, times a number
/// after them: ([1]*3+[0]*1)*12, or [0,1]*12. Empty where the text is no such expression, or one of
/// more than `most` elements. Source: Megatron-LM @d98e8a64dd training/arguments.py _eval_pattern.
std::vector<bool> read_layer_pattern(std::string_view text, std::int64_t most);

/// Such an expression of a list, run by run: ([0]*3+[1]*58).
std::string layer_pattern(const std::vector<bool>& list);

}  // namespace zeroplan
