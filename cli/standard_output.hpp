#pragma once
// The answer on its way out.

#include <string_view>

#include "cli/arguments.hpp"

namespace zeroplan {

/// Writes all of `text` to standard output. Throws std::system_error where that does not take it:
/// a full disk, a closed pipe.
void write_answer(std::string_view text);

/// Whether the answer is colored: as asked, else on a terminal where NO_COLOR does not forbid it.
bool wants_color(const OutputOptions& output);

}  // namespace zeroplan
