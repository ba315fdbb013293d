#pragma once
// What is below one shape and may be among the best?

#include <optional>
#include <span>
#include <vector>

#include "cost_model/remember/evaluator.hpp"
#include "planner/simplicity.hpp"
#include "planner/sweep/bar.hpp"
#include "planner/sweep/enumeration.hpp"
#include "planner/sweep/lower_bounds.hpp"

namespace zeroplan {

/// Why a layout was not evaluated, or was and is no plan. Beside the names of rules.
inline constexpr std::string_view too_large = "does not fit";
inline constexpr std::string_view bound_too_large = "states and activations alone exceed capacity";
inline constexpr std::string_view no_network = "no network joins the nodes";
inline constexpr std::string_view not_looked_at = "not looked at before the stop";
inline constexpr std::string_view bound_too_slow = "cannot beat the best found";

/// What opening one shape gave.
struct ShapeResult {
  std::optional<Scored> best;        // of what fits before the allocator is replayed
  std::vector<Scored> front;         // of all that were timed
  std::int64_t evaluated = 0;        // points whose memory was evaluated
  std::int64_t feasible = 0;         // of those, what fits
  bool untimed = false;              // some that fit or may, since others are better
  std::optional<Scored> least;       // needs fewest bytes, and does not fit
  std::optional<Bytes> least_bound;  // lowest memory bound of the nodes
  Rejections rejected;               // what is not feasible
};

/// What a space is walked, bounded and weighed with. Not for use by several threads at once.
struct SpaceTools {
  /// Both must outlive it.
  SpaceTools(const SearchSpace& own, const Evaluator& of_question)
      : space(own),
        evaluator(of_question),
        bounds(own, evaluator),
        enumeration(own),
        simplicity(own.request) {}
  const SearchSpace& space;
  const Evaluator& evaluator;
  LowerBounds bounds;
  Enumeration enumeration;
  SimplicityOf simplicity;
};

/// Looks at every node of the shape whose floor is not above the bar, in the order of the floors.
/// `least`: bytes that all of them need, by its own floor.
/// `refused`: plans of the shape that do not fit when played; what needs as much with the same
/// kind of recompute is no plan either.
ShapeResult open_shape(SpaceTools& tools,
                       const Layout& shape,
                       const Cutoff& cutoff,
                       Bytes least,
                       std::span<const Scored> refused);

}  // namespace zeroplan
