// When do the ranks of 1F1B finish? Front door: OneFOneB::end.
#include "cost_model/step/one_f_one_b.hpp"

#include <algorithm>
#include <limits>
#include <ranges>

namespace zeroplan {

OneFOneB::OneFOneB(std::span<const AlikeRanks> ranks, std::int64_t micro_batches)
    : further_(static_cast<double>(micro_batches - 1)) {
  for (const AlikeRanks& some : ranks) {
    firsts_.push_back(count_);
    count_ += some.ranks;
  }
  first_steady_ = count_ - micro_batches + 1;
  Point first;  // of equal neighbours
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const AlikeRanks& some = ranks[i];
    if (i > 0 && some.forward == first.forward && some.backward == first.backward) continue;
    if (i > 0) add_neighbours(first, firsts_[i] - first.rank);
    const Point before = points_.empty() ? Point{} : points_.back();
    first = {.rank = firsts_[i],
             .forward = some.forward,
             .backward = some.backward,
             .all_forward = before.all_forward + some.forward,
             .all_backward = before.all_backward + some.backward,
             .longest_forward = std::max(before.longest_forward, some.forward)};
  }
  add_neighbours(first, count_ - first.rank);
  find_chains();
}

void OneFOneB::add_neighbours(const Point& first, std::int64_t ranks) {
  points_.push_back(first);
  const std::int64_t last = first.rank + ranks - 1;
  for (const std::int64_t bend : {first_steady_ - 1, first_steady_}) {
    if (first.rank < bend && bend < last) points_.push_back(further(first, bend - first.rank));
  }
  if (ranks > 1) points_.push_back(further(first, ranks - 1));
}

// The point so many equal ranks on.
OneFOneB::Point OneFOneB::further(const Point& point, std::int64_t ranks) {
  return {.rank = point.rank + ranks,
          .forward = point.forward,
          .backward = point.backward,
          .all_forward = point.all_forward + static_cast<double>(ranks) * point.forward,
          .all_backward = point.all_backward + static_cast<double>(ranks) * point.backward,
          .longest_forward = point.longest_forward};
}

// What a chain does before the end of a step is the same whichever rank it ends on.
void OneFOneB::find_chains() {
  double deepest = 0;  // the best of the detours that begin a step, from the rank on
  for (Point& s : std::views::reverse(points_)) {
    s.spare = std::min(further_, static_cast<double>(count_ - 1 - s.rank));
    deepest = std::max(deepest, s.both() + s.spare * s.longest_forward);
    const double steady = further_ - 1 - s.spare;
    s.to_last = steady < 0 ? -std::numeric_limits<double>::infinity()
                           : deepest - s.before() + steady * (s.forward + s.backward);
  }
  double longest = -std::numeric_limits<double>::infinity();
  for (Point& last : points_) {
    longest = std::max(longest, last.to_last);
    last.to_last = std::max(longest, further_ * last.longest_forward);
  }
}

double OneFOneB::end(std::size_t i) const {
  const std::int64_t rank = firsts_[i];
  const auto known = std::ranges::find(points_, rank, &Point::rank);
  if (known != points_.end()) return end_at(static_cast<std::size_t>(known - points_.begin()));
  OneFOneB with_rank = *this;
  return with_rank.end_at(with_rank.insert(rank));
}

// The index of a rank among equal neighbours.
std::size_t OneFOneB::insert(std::int64_t rank) {
  const auto next = std::ranges::upper_bound(points_, rank, {}, &Point::rank);
  const Point own = further(*std::prev(next), rank - std::prev(next)->rank);
  const auto place = points_.insert(next, own);
  find_chains();
  return static_cast<std::size_t>(place - points_.begin());
}

double OneFOneB::end_at(std::size_t own) const {
  double end = 0;
  double longest = 0;  // backward, of the rank's own and deeper ones
  for (std::size_t deepest = own; deepest < points_.size(); ++deepest) {
    const Point& last = points_[deepest];
    longest = std::max(longest, last.backward);
    const double back = std::max(last.to_last + last.spare * longest,
                                 last.spare * last.longest_forward + further_ * longest);
    end = std::max(end, last.both() + back);
  }
  return end - (points_[own].all_backward - points_[own].backward);
}

}  // namespace zeroplan
