#pragma once
// The constants that are fitted on whole steps, by the generation of GPU whose steps show them.

#include <span>
#include <string_view>

#include "cost_model/kernel/time_constants.hpp"

namespace zeroplan::holdout {

struct Constant {
  std::string_view name;
  double& (*of)(TimeConstants&);
  double neutral;  // without any step that shows it
};

/// Constants and the GPUs whose steps determine them.
struct Study {
  std::string_view name;
  std::size_t generation;  // index in TimeConstants::generations
  std::span<const Constant> constants;
  bool scans = false;  // of models with state spaces alone, which no other study is fitted on
};

std::span<const Study> studies();

/// nullptr where there is none.
const Constant* find_constant(std::string_view name);

}  // namespace zeroplan::holdout
