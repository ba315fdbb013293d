#pragma once
// Two answers of fit side by side, row by row.

#include <string>
#include <vector>

#include "planner/fit.hpp"
#include "presets/configuration.hpp"

namespace zeroplan {

/// For whom it was chosen what neither side gives.
enum class ChosenFor { each, a, b };
template <>
struct Spellings<ChosenFor> {
  static constexpr std::array<std::string_view, 3> value{"each", "a", "b"};
};

struct Comparison {
  FitAnswer a, b;
  ChosenFor chosen_for = ChosenFor::each;
  std::vector<TypedOption> shared = {};  // what was chosen once, for both
};

/// Verdicts, what was chosen once, the fields of the layout that differ, and rows of the worst
/// stage of each that add up; `quiet`: the verdicts alone.
std::string compare_text(const Comparison& sides, bool quiet);

/// Schema zeroplan.compare/1: `a` and `b` as fit writes them, `chosen_for` (each, a or b) and the
/// options `shared`, and `rows`: section, name, unit, the
/// value on each side, and b - a where they are numbers.
std::string compare_json(const Comparison& sides);

/// The rows alone.
std::string compare_csv(const Comparison& sides);

}  // namespace zeroplan
