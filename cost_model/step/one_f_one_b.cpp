// When do the ranks of 1F1B finish? Front door: OneFOneB::end.
#include "cost_model/step/one_f_one_b.hpp"

#include <algorithm>

namespace zeroplan {

OneFOneB::OneFOneB(std::span<const AlikeRanks> ranks, std::int64_t micro_batches)
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
  // Where the sums bend: below the first rank, all forward passes are warm-up.
  const std::int64_t first_steady = count_ - micro_batches_ + 1;
  for (const std::int64_t rank : {first_steady - 1, first_steady}) {
    if (rank >= 0) with_point(rank, points_);
  }
}

// The point `ranks` further along alike ranks.
OneFOneB::Point OneFOneB::further(Point point, std::int64_t ranks) {
  point.rank += ranks;
  point.all_forward += static_cast<double>(ranks) * point.forward;
  point.all_backward += static_cast<double>(ranks) * point.backward;
  return point;
}

std::size_t OneFOneB::with_point(std::int64_t rank, Points& points) {
  const auto next =
      std::find_if(points.begin(), points.end(), [&](const Point& p) { return p.rank >= rank; });
  const auto index = static_cast<std::size_t>(next - points.begin());
  if (next == points.end() || next->rank == rank) return index;
  const Point before = *std::prev(next);  // of the alike ranks that it stands among
  points.insert(next, further(before, rank - before.rank));
  return index;
}

double OneFOneB::end(std::int64_t rank) const {
  const auto known = std::ranges::find(points_, rank, &Point::rank);
  if (known != points_.end())
    return end(points_, static_cast<std::size_t>(known - points_.begin()));
  Points points = points_;
  const std::size_t own = with_point(rank, points);
  return end(points, own);
}

double OneFOneB::end(const Points& points, std::size_t own) const {
  const double to_own = points[own].before_backward();
  const auto extra = static_cast<double>(micro_batches_ - 1);

  // By the depth of a chain's last detour, from the rank's own on: both directions with the
  // backward passes of the deepest rank's cool-down.
  boost::container::small_vector<double, 12> cool_downs(points.size());
  double end = 0;
  double longest = 0;  // backward
  for (std::size_t i = own; i < points.size(); ++i) {
    const Point& d = points[i];
    const double both = d.all_forward + d.all_backward;
    longest = std::max(longest, d.backward);
    cool_downs[i] = both + spare(d) * longest;
    const double forward_first = extra * d.longest_forward + spare(d) * longest;
    const double backward_last = spare(d) * d.longest_forward + extra * longest;
    end = std::max(end, both - to_own + std::max(forward_first, backward_last));
  }

  double deepest = 0;       // the best of the detours that begin a step, from s on
  double deepest_last = 0;  // and of those that end it
  for (std::size_t i = points.size(); i-- > 0;) {
    const Point& s = points[i];
    deepest = std::max(deepest, s.all_forward + s.all_backward + spare(s) * s.longest_forward);
    if (i >= own) deepest_last = std::max(deepest_last, cool_downs[i]);
    const double steady = extra - 1 - spare(s);
    if (steady < 0) continue;
    end = std::max(end, deepest - s.before_backward() + steady * (s.forward + s.backward) +
                            deepest_last - s.before_forward() - to_own);
  }
  return end;
}

}  // namespace zeroplan
