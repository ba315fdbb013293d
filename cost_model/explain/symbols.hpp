#pragma once
// The sizes that formulas are written in, and what happens to a problem when one of them doubles.

#include <string_view>
#include <vector>

#include "cost_model/question/problem.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// A size with the letter that papers give it.
struct Symbol {
  std::string_view name;
  std::string_view meaning;
  std::int64_t value = 0;
};

/// Two problems that differ in one size alone, `after` having twice as much of it. `before` is the
/// problem that is explained, or where its widths would not divide any further, one with wider
/// ones.
struct Doubling {
  Symbol symbol;
  Problem before, after;
};

/// One for each size that a tensor may be a product of; degrees of parallelism only above 1.
std::vector<Doubling> doublings(const Problem& problem);

/// Elements on one rank of `stage`: of everything, of its part of that, and of each kind of block.
/// Empty kinds have the value 0.
std::vector<Symbol> element_counts(const Problem& problem, const Stage& stage);

}  // namespace zeroplan
