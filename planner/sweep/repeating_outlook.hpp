#pragma once
// Which kinds of recompute may a pass be worth a look with?

#include <array>

#include "planner/sweep/incumbent.hpp"
#include "planner/sweep/lower_bounds.hpp"

namespace zeroplan {

/// Whether some nodes together are open, and if they are not why.
enum class Outlook { open, large, slow };

/// Which nodes of a pass may be worth a look on Megatron-Core, where nodes are many: without
/// recompute a pass is fast, with all of it small, and together these rule out little, but none of
/// its nodes is both.
class RepeatingOutlook {
 public:
  /// The space, the bounds and the incumbent must outlive this object.
  RepeatingOutlook(const SearchSpace& space, LowerBounds& bounds, Incumbent& incumbent)
      : space_(space), bounds_(bounds), incumbent_(incumbent) {}

  /// `bound`: what nothing of the pass undercuts.
  void weigh(const Problem& pass, const ShapeBound& bound);

  /// The outlook of a node of the pass that was weighed last, with all others that repeat as it
  /// does.
  Outlook outlook(const Layout& node) const {
    return known_[static_cast<std::size_t>(repeating_of(node))];
  }

 private:
  Outlook some(const Problem& pass, ShapeBound bound, Repeating what, RepeatedRange layers);
  Outlook with_layers(const Problem& pass, const ShapeBound& bound);
  Outlook with_layers(const Problem& pass,
                      const ShapeBound& bound,
                      std::int64_t fewest,
                      std::int64_t most,
                      std::int64_t all);

  const SearchSpace& space_;
  LowerBounds& bounds_;
  Incumbent& incumbent_;
  std::array<Outlook, 4> known_{};  // by Repeating
  std::optional<Problem> node_;
};

}  // namespace zeroplan
