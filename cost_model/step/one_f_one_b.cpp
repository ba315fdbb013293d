// When do the ranks of 1F1B finish? Front door: OneFOneB::end.
#include "cost_model/step/one_f_one_b.hpp"

#include <algorithm>

namespace zeroplan {

OneFOneB::OneFOneB(const std::vector<AlikeRanks>& ranks, std::int64_t micro_batches)
    : micro_batches_(micro_batches) {
  Point first{.rank = -1};  // of the run of equal neighbours
  for (const AlikeRanks& some : ranks) {
    const bool joins =
        count_ > 0 && some.forward == first.forward && some.backward == first.backward;
    if (!joins) {
      const Point before = points_.empty() ? first : points_.back();
      first = {.rank = count_,
               .forward = some.forward,
               .backward = some.backward,
               .all_forward = before.all_forward + some.forward,
               .all_backward = before.all_backward + some.backward,
               .longest_forward = std::max(before.longest_forward, some.forward)};
      points_.push_back(first);
    }
    count_ += some.ranks;
    const std::int64_t further_ranks = count_ - 1 - first.rank;
    if (further_ranks == 0) continue;
    if (points_.back().rank > first.rank) points_.pop_back();
    points_.push_back(further(first, further_ranks));
  }
}

// The point `ranks` further along alike ranks.
OneFOneB::Point OneFOneB::further(Point point, std::int64_t ranks) {
  point.rank += ranks;
  point.all_forward += static_cast<double>(ranks) * point.forward;
  point.all_backward += static_cast<double>(ranks) * point.backward;
  return point;
}

std::vector<OneFOneB::Point> OneFOneB::points_with(std::int64_t rank) const {
  std::vector<Point> points = points_;
  const auto next =
      std::find_if(points.begin(), points.end(), [&](const Point& p) { return p.rank >= rank; });
  if (next->rank == rank) return points;
  const Point& first = *std::prev(next);  // of the alike ranks that it stands among
  points.insert(next, further(first, rank - first.rank));
  return points;
}

double OneFOneB::end(std::int64_t rank) const {
  const std::vector<Point> points = points_with(rank);
  const auto own = static_cast<std::size_t>(
      std::find_if(points.begin(), points.end(), [&](const Point& p) { return p.rank == rank; }) -
      points.begin());

  // By the depth of the detour that ends a step, from the rank's own on: both directions with the
  // backward passes of the deepest rank's cool-down.
  std::vector<double> cool_downs(points.size());
  double longest = 0;
  for (std::size_t i = own; i < points.size(); ++i) {
    const Point& d = points[i];
    longest = std::max(longest, d.backward);
    cool_downs[i] = d.all_forward + d.all_backward + warm_up(d) * longest;
  }

  double end = 0;
  double deepest = 0;       // the best of the detours that begin a step, from s on
  double deepest_last = 0;  // and of those that end it
  for (std::size_t i = points.size(); i-- > 0;) {
    const Point& s = points[i];
    deepest = std::max(deepest, s.all_forward + s.all_backward + warm_up(s) * s.longest_forward);
    if (i >= own) deepest_last = std::max(deepest_last, cool_downs[i]);
    const double steady = static_cast<double>(micro_batches_ - 2) - warm_up(s);
    end = std::max(end, deepest - s.before_backward() + steady * (s.forward + s.backward) +
                            deepest_last - s.before_forward() - points[own].before_backward());
  }
  return end;
}

}  // namespace zeroplan
