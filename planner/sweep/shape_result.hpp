#pragma once
// What was found below one shape, and what of it is kept.

#include <optional>
#include <span>
#include <vector>

#include "planner/sweep/enumeration.hpp"
#include "planner/sweep/incumbent.hpp"

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
  double beyond = no_threshold;      // the objective of what was left out is no lower
  std::vector<Scored> front;         // of all that were timed
  std::int64_t evaluated = 0;        // points whose memory was evaluated
  std::int64_t feasible = 0;         // of those, what fits
  bool untimed = false;              // some that fit or may, since others are better
  std::optional<Scored> least;       // needs fewest bytes, and does not fit
  std::optional<Bytes> least_bound;  // lowest memory bound of the nodes
  Rejections rejected;               // what is not feasible
};

/// The result while the shape is opened, and the incumbent that it sets.
class ShapeFindings {
 public:
  /// All must outlive it. `refused`: plans of the shape that do not fit when played.
  ShapeFindings(const SearchSpace& space, const Cutoff& cutoff, std::span<const Scored> refused)
      : cutoff_(cutoff), incumbent_(cutoff, space), refused_(refused) {}

  Incumbent& incumbent() { return incumbent_; }
  /// For what is counted.
  ShapeResult& result() { return result_; }

  /// Counts points that are not looked at, since a bound is too large or too slow.
  void reject_unseen(bool large, std::int64_t points);

  /// Whether nothing with this bound is worth a look; then its points are counted.
  bool cut(const ShapeBound& bound, std::int64_t points);

  /// What fits, with the seconds of its step, over so many tokens.
  void keep(Scored scored, double tokens);

  /// What does not fit, where no other needs as few bytes.
  void keep_least(const Scored& scored);

  /// The result, with what rules rejected. Once.
  ShapeResult take(const Rejections& by_rules);

 private:
  const Cutoff& cutoff_;
  Incumbent incumbent_;
  std::span<const Scored> refused_;
  ShapeResult result_;
};

}  // namespace zeroplan
