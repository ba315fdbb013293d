// When do the ranks of 1F1B finish? Front door: OneFOneB::end.
#include "cost_model/step/one_f_one_b.hpp"

#include <algorithm>
#include <limits>
#include <ranges>

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
    if (rank >= 0) add_point(rank);
  }
  find_chains();
}

// The point `ranks` further along alike ranks.
OneFOneB::Point OneFOneB::further(Point point, std::int64_t ranks) {
  point.rank += ranks;
  point.all_forward += static_cast<double>(ranks) * point.forward;
  point.all_backward += static_cast<double>(ranks) * point.backward;
  return point;
}

std::size_t OneFOneB::add_point(std::int64_t rank) {
  const auto next =
      std::find_if(points_.begin(), points_.end(), [&](const Point& p) { return p.rank >= rank; });
  const auto index = static_cast<std::size_t>(next - points_.begin());
  if (next == points_.end() || next->rank == rank) return index;
  const Point before = *std::prev(next);  // of the alike ranks that it stands among
  points_.insert(next, further(before, rank - before.rank));
  return index;
}

// What a chain does before the end of a step is the same whichever rank it ends on.
void OneFOneB::find_chains() {
  const auto extra = static_cast<double>(micro_batches_ - 1);
  double deepest = 0;  // the best of the detours that begin a step, from the rank on
  for (Point& s : std::views::reverse(points_)) {
    s.spare = std::min(extra, static_cast<double>(count_ - 1 - s.rank));
    deepest = std::max(deepest, s.both() + s.spare * s.longest_forward);
    const double steady = extra - 1 - s.spare;
    s.to_last = steady < 0 ? -std::numeric_limits<double>::infinity()
                           : deepest - s.before() + steady * (s.forward + s.backward);
  }
  double longest = -std::numeric_limits<double>::infinity();
  for (Point& last : points_) {
    longest = std::max(longest, last.to_last);
    last.to_last = std::max(longest, extra * last.longest_forward);
  }
}

double OneFOneB::end(std::int64_t rank) const {
  const auto known = std::ranges::find(points_, rank, &Point::rank);
  if (known != points_.end()) return end_at(static_cast<std::size_t>(known - points_.begin()));
  OneFOneB with_rank = *this;
  const std::size_t own = with_rank.add_point(rank);
  with_rank.find_chains();
  return with_rank.end_at(own);
}

double OneFOneB::end_at(std::size_t own) const {
  const auto extra = static_cast<double>(micro_batches_ - 1);
  double end = 0;
  double longest = 0;  // backward, of the rank's own and deeper ones
  for (std::size_t i = own; i < points_.size(); ++i) {
    const Point& last = points_[i];
    longest = std::max(longest, last.backward);
    const double back = std::max(last.to_last + last.spare * longest,
                                 last.spare * last.longest_forward + extra * longest);
    end = std::max(end, last.both() + back);
  }
  return end - (points_[own].all_backward - points_[own].backward);
}

}  // namespace zeroplan
