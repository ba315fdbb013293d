#pragma once
// In which order should ranks fill the nodes of a fabric?

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cost_model/answer/step_time.hpp"

namespace zeroplan {

struct BetterPlacement {
  std::string_view what;  // stands together: neighbours, each pipeline stage, each pipeline
  std::vector<std::int64_t> nodes;  // their places, in the order of ranks: for a list of hosts
  double step_seconds = 0;
};

/// The part of the step that another order has to save.
inline constexpr double worth_another_order = 0.005;

/// The fastest of some orders of the same nodes, where it is faster than the given one, which takes
/// `step`: place after place; each pipeline stage, or each pipeline, on nodes below as few switches
/// as it can be. Nothing where no fabric is known, or no stage has whole nodes of its own but one.
std::optional<BetterPlacement> better_placement(const Problem& problem, const StepTime& step);

}  // namespace zeroplan
