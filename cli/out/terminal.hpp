#pragma once
// What the terminal that is written to can show.

#include <cstddef>

#include "cli/request/arguments.hpp"

namespace zeroplan {

/// Letters of a line of the terminal on standard output, at least 60; 0 where there is none.
/// COLUMNS says it before the terminal does.
std::size_t terminal_width();

/// Letters of a line beyond which no drawing grows.
inline constexpr std::size_t widest_drawing = 160;

/// Whether the locale (LC_ALL, LC_CTYPE, LANG) has letters beyond ASCII.
bool terminal_has_blocks();

struct TextStyle {
  bool color = false;
  bool quiet = false;
  std::size_t width = 0;  // of the terminal; 0: none, and no drawings
  bool blocks = false;    // the terminal shows letters beyond ASCII
};

/// The style of what is written to standard output.
TextStyle text_style(const OutputOptions& output);

}  // namespace zeroplan
