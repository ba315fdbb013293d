#pragma once
// What is below one shape and may be among the best?

#include <span>

#include "cost_model/remember/evaluator.hpp"
#include "planner/simplicity.hpp"
#include "planner/sweep/enumeration.hpp"
#include "planner/sweep/lower_bounds.hpp"
#include "planner/sweep/shape_result.hpp"

namespace zeroplan {

/// What a space is walked, bounded and weighed with. Not for use by several threads at once.
struct SpaceTools {
  /// The space and the evaluator must outlive the tools.
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

/// Looks at every node of the shape whose floor is not above the incumbent, in the order of the
/// floors. `least`: bytes that all nodes need, by the shape's own floor. `refused`: plans of the
/// shape that do not fit when played; what needs as much with the same kind of recompute is no plan
/// either.
ShapeResult open_shape(SpaceTools& tools,
                       const Layout& shape,
                       const Cutoff& cutoff,
                       Bytes least,
                       std::span<const Scored> refused);

}  // namespace zeroplan
