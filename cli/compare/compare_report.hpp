#pragma once
// Two answers of fit side by side, row by row.

#include <string>
#include <vector>

#include "planner/fit.hpp"

namespace zeroplan {

struct Comparison {
  FitAnswer a, b;
};

/// Verdicts, the fields of the layout that differ, and rows of the worst stage of each that add up;
/// `quiet`: the verdicts alone.
std::string compare_text(const Comparison& sides, bool quiet);

/// Schema zeroplan.compare/1: `a` and `b` as fit writes them, and `rows`: section, name, unit, the
/// value on each side, and b - a where they are numbers.
std::string compare_json(const Comparison& sides);

/// The rows alone.
std::string compare_csv(const Comparison& sides);

}  // namespace zeroplan
