#pragma once
// Text within the width of a terminal.

#include <cstddef>
#include <string>
#include <string_view>

namespace zeroplan {

/// How many columns of a terminal UTF-8 takes: a letter each, escape codes none.
std::size_t letters(std::string_view text);

/// `text` with its lines broken at spaces so that none is wider than `width`, words longer than a
/// line excepted; 0: as it is. What goes on stands under the second column of its line where that
/// begins early, else two further in.
std::string folded(std::string_view text, std::size_t width);

}  // namespace zeroplan
