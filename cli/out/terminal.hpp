#pragma once
// The terminal that an answer is shown in.

#include <cstddef>

namespace zeroplan {

/// Columns of the terminal that standard output is, as COLUMNS or the terminal itself says, 60 to
/// 160; 0 where it is none.
std::size_t terminal_width();

/// Whether the locale (LC_ALL, LC_CTYPE, LANG) has letters beyond ASCII.
bool terminal_has_blocks();

}  // namespace zeroplan
