#pragma once
// Memory of each pipeline stage as bars of text.

#include <cstddef>
#include <string>

#include "cost_model/answer/estimate.hpp"

namespace zeroplan {

struct BarStyle {
  std::size_t width = 80;  // of a line
  bool blocks = false;     // else letters
  bool color = false;      // with blocks: a color a category
};

/// A bar a stage, as long as its device bytes, up to `|`, the capacity; alike neighbours are one
/// line. A letter, or a color, a category, explained below.
std::string memory_bars(const Estimate& estimate, const BarStyle& style);

}  // namespace zeroplan
