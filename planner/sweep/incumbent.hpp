#pragma once
// What must a layout not be above to be worth a look?

#include <algorithm>
#include <limits>

#include "planner/sweep/choices.hpp"
#include "planner/sweep/ranking.hpp"

namespace zeroplan {

/// The threshold of a search that keeps all it finds.
inline constexpr double no_threshold = std::numeric_limits<double>::infinity();

/// What a layout must not be above to be worth a look; the same for all that is opened together.
struct Cutoff {
  Objective objective = Objective::step;
  bool exhaustive = false;             // there is no cutoff
  const ParetoFront* front = nullptr;  // found so far, where it is asked for
  double threshold = no_threshold;     // of the objective
  double slowest = no_threshold;       // seconds a token
  bool none_fits = true;               // so far: what is closest to fitting may be asked for

  /// Whether memory decides what is worth a look, or shows that nothing fits at all.
  bool weighs_memory() const {
    return front != nullptr || objective == Objective::headroom ||
           objective == Objective::simplicity || none_fits;
  }
  /// Whether time may rule out anything.
  bool weighs_time() const {
    return front != nullptr || slowest < no_threshold || objective != Objective::headroom;
  }
};

/// What no layout below a shape undercuts.
struct ShapeBound {
  double seconds_per_token = 0;
  Bytes device;
  std::int64_t complexity = 0;
};

/// Tokens of a step of the problem, by which its seconds are divided.
double tokens_of_step(const Problem& problem);

/// What a layout must not be above while one shape is opened, of which one plan is enough: the best
/// found so far, the incumbent, too.
class Incumbent {
 public:
  /// The cutoff and the space must outlive it.
  Incumbent(const Cutoff& cutoff, const SearchSpace& space);

  const Cutoff& cutoff() const { return cutoff_; }

  /// The Pareto front of what was timed of the shape.
  ParetoFront& front() { return front_; }

  /// Lowers the incumbent to this value of the objective.
  void lower(double value) { own_ = value; }

  /// What a device may hold of what fits; of no use where it matters how much a layout lacks.
  Bytes most() const { return most_; }

  /// Whether nothing with this floor of its bytes fits.
  bool is_large(Bytes device) const { return device > large_; }

  /// Whether nothing with these floors is worth a look. What is not counts for `beyond`.
  bool hopeless(const ShapeBound& bound);

  /// Leaves out a plan with this value of the objective, which is above the threshold.
  void leave_out(double value) { beyond_ = std::min(beyond_, value); }

  /// The lowest value that anything may have that was left out, though it may fit.
  double beyond() const { return beyond_; }

  /// Whether time may rule out a point.
  bool is_bounded() const;

 private:
  const Cutoff& cutoff_;
  const std::int64_t gpus_;
  const Bytes most_;
  const Bytes large_;
  ParetoFront front_;
  double own_ = no_threshold;  // value of the best plan so far
  double beyond_ = no_threshold;
};

}  // namespace zeroplan
