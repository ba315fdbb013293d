// When do the ranks of 1F1B finish? Front door: OneFOneB::end.
#include "cost_model/step/one_f_one_b.hpp"

#include <algorithm>
#include <limits>
#include <ranges>

namespace zeroplan {

OneFOneB::OneFOneB(std::span<const AlikeRanks> ranks, std::int64_t micro_batches)
    : further_(static_cast<double>(micro_batches - 1)) {
  for (const AlikeRanks& some : ranks) count_ += some.ranks;
  // Below this rank all forward passes are warm-up.
  const std::int64_t first_steady = count_ - micro_batches + 1;
  std::int64_t first = 0;  // of these ranks
  // Of the run of equal neighbours:
  std::int64_t begin = 0;
  AlikeRanks each;
  double forward_before = 0, backward_before = 0, longest_forward = 0;
  const auto add = [&](std::int64_t rank) {
    const auto together = static_cast<double>(rank - begin + 1);
    points_.push_back({.rank = rank,
                       .forward = each.forward,
                       .backward = each.backward,
                       .all_forward = forward_before + together * each.forward,
                       .all_backward = backward_before + together * each.backward,
                       .longest_forward = longest_forward});
  };
  for (const AlikeRanks& some : ranks) {
    if (some.forward != each.forward || some.backward != each.backward) {
      forward_before += static_cast<double>(first - begin) * each.forward;
      backward_before += static_cast<double>(first - begin) * each.backward;
      longest_forward = std::max(longest_forward, some.forward);
      begin = first;
      each = some;
    }
    const std::int64_t last = first + some.ranks - 1;
    firsts_.push_back(points_.size());
    add(first);
    for (const std::int64_t bend : {first_steady - 1, first_steady}) {
      if (first < bend && bend < last) add(bend);
    }
    if (last > first) add(last);
    first = last + 1;
  }
  find_chains();
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
  const std::size_t own = firsts_[i];
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
