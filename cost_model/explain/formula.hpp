#pragma once
// A number as a product of sizes. The product is found by asking the code that made the number
// again with one size doubled, so there is no second place where a formula stands.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cost_model/explain/symbols.hpp"

namespace zeroplan {

/// factor x the product of symbols to their powers, rounded up to a unit.
struct Formula {
  struct Power {
    Symbol symbol;
    int exponent;
  };
  std::int64_t factor = 1;
  std::int64_t divisor = 1;
  std::vector<Power> powers;
  std::int64_t unit = 1;

  std::int64_t value() const;
  std::string in_symbols() const;  // "4 b s f / t"
  std::string in_numbers() const;  // "4 x 1 x 4096 x 14336 / 8"
};

/// Numbers that depend on a problem, always in the same order.
using Measure = std::function<std::vector<std::int64_t>(const Problem&)>;

/// A formula for each number that `measure` gives for the problem, whose value is that number
/// exactly: a multiple of one of the element counts of `stage`, if it is that after every doubling
/// too; else a power of each size that it doubles, quarters or halves with, times a factor. Empty
/// for a number that depends on no size, or as a sum, and of a recorded step. `unit`: what numbers
/// have been rounded up to.
std::vector<std::optional<Formula>> formulas(const Problem& problem,
                                             const Stage& stage,
                                             const Measure& measure,
                                             std::int64_t unit = 1);

}  // namespace zeroplan
