#pragma once
// All that one thread of a search needs to bound shapes, open them and play their plans.

#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "cost_model/answer/estimate.hpp"
#include "planner/sweep/open_shape.hpp"

namespace zeroplan {

/// Not for use by several threads at once.
class ShapeSearch {
 public:
  /// The spaces must outlive it.
  explicit ShapeSearch(const std::vector<SearchSpace>& spaces);

  /// `weighs_memory`: else the device's bytes are left at nothing.
  ShapeBound bound(std::size_t space, const Layout& shape, bool weighs_memory);

  /// See open_shape.
  ShapeResult open(std::size_t space,
                   const Layout& shape,
                   const Cutoff& cutoff,
                   Bytes least,
                   std::span<const Scored> refused);

  /// A plan that open found to fit with the allocator replayed, where it still fits.
  std::optional<Estimate> played(std::size_t space, const Scored& plan) const;

  /// What makes a plan less simple than others.
  std::int64_t complexity(std::size_t space, const Scored& plan) const;

 private:
  std::deque<Evaluator> evaluators_;  // of spaces that differ but in the number of GPUs
  std::deque<SpaceTools> tools_;      // of each space
};

}  // namespace zeroplan
