#pragma once
// The best layouts of a space, exactly: best-first branch and bound, or every one of them.

#include <map>
#include <optional>
#include <vector>

#include "planner/sweep/shape_search.hpp"
#include "planner/sweep/watch.hpp"

namespace zeroplan {

/// What to look for, and how.
struct SearchSettings {
  Objective objective = Objective::step;
  std::size_t shapes = 10;  // how many of the best shapes, or families, to find
  Kin kin = Kin::shape;
  bool front = true;         // find the whole Pareto front too: what is on it must be evaluated
  bool exhaustive = false;   // evaluate every legal layout
  bool may_be_none = false;  // that fits: shapes whose states exceed capacity are not opened
  /// With objective `step`: find the simplest plan too among those that are slower than the fastest
  /// by no more than this part of its time; and of families the same of each.
  std::optional<double> tie = {};
  std::size_t threads = 0;  // 0: one for each core that this process may run on
};

/// The fastest of the plans with one tp and one pp.
struct GridCell {
  double seconds_per_token = 0;  // 0: none was found to fit
  // Where some layouts were not timed since others are better: no such one takes less.
  std::optional<double> untimed_from = {};

  bool cut() const { return untimed_from.has_value(); }
  bool at_most() const { return untimed_from && *untimed_from < seconds_per_token; }
};

/// A plan with the allocator replayed.
struct PlayedPlan {
  Scored plan;
  Estimate played;
};

struct SearchResult {
  std::vector<Scored> best;                  // one a shape, best first
  std::vector<Estimate> played;              // of each of them, with the allocator replayed
  std::optional<PlayedPlan> simplest;        // of the tie, see Simplicity; then the roomiest
  std::vector<PlayedPlan> simplest_of_each;  // best: of its family, where it ties with the fastest
                                             // of all, else with the best of its family
  std::int64_t refused_when_played = 0;      // what would be among them but for that
  std::vector<Scored> front;                 // no other is both faster and smaller
  std::int64_t points = 0;                   // of the space
  std::int64_t evaluated = 0;                // points whose memory was evaluated
  std::int64_t evaluated_again = 0;          // to replace refused plans and to find the simplest
  std::int64_t feasible = 0;                 // of those, what fits; timed unless bounded away
  Rejections rejected;               // of all points that are not feasible; with those they add up
  std::optional<Scored> least;       // evaluated, needs fewest bytes, and does not fit; no time
  std::optional<Bytes> least_bound;  // lowest memory bound of all nodes
  std::map<std::pair<std::int64_t, std::int64_t>, GridCell> grid;  // by tp, pp
  bool stopped = false;  // by the watch: not all was looked at
};

/// Searches all spaces together, one a GPU count; results and counts are the same for any number of
/// threads. A layout is feasible when its estimate fits with its whole band; the best also fit with
/// the allocator replayed.
SearchResult search(const std::vector<SearchSpace>& spaces,
                    const SearchSettings& settings,
                    const Watch& watch = {});

}  // namespace zeroplan
