// When do the ranks of 1F1B finish? Front door: finish_one_f_one_b.
#include "cost_model/pipeline/one_f_one_b.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <limits>
#include <ranges>

namespace zeroplan {
namespace {

// A pass ends with the longest chain of passes that wait for each other. Let such a chain stay for
// the steady part of a step on one rank s. It comes there by the forward passes of the first
// micro-batch, may go deeper, to a rank d, use up the forward passes of that rank's warm-up (on
// the slowest rank so far), and come back up with the first backward passes; at the end of the
// step it may do the mirror image of that. Any other detour exchanges as many passes of s for as
// many of another rank, and so is one of the chains that stay there. Or it has no steady part, and
// all forward passes, or all backward passes, run on one rank. The end is the largest sum over s
// and the depths; each sum is linear along alike ranks, so that the first and the last of them
// stand for all. Derived here; tested against the passes themselves.
template <class Seconds>
class OneFOneB {
 public:
  OneFOneB(std::span<const AlikeRanks<Seconds>> ranks, std::int64_t micro_batches);

  // Seconds until the last pass has ended of the first of ranks[i].
  Seconds end(std::size_t i) const;

 private:
  // A rank, and sums over it and those before it.
  struct Point {
    std::int64_t rank = 0;
    double spare = 0;  // passes of its warm-up, and of its cool-down, beside a chain's one
    Seconds forward = 0;
    Seconds backward = 0;
    Seconds all_forward = 0;
    Seconds all_backward = 0;
    Seconds longest_forward = 0;
    Seconds to_last = 0;  // of the longest chain that goes back from here at a step's end

    Seconds both() const { return all_forward + all_backward; }
    Seconds before() const { return both() - forward - backward; }
  };

  void add_neighbours(const Point& first, std::int64_t ranks);
  static Point further(const Point& point, std::int64_t ranks);
  std::size_t insert(std::int64_t rank);
  void find_chains();
  Seconds end_at(std::size_t own) const;

  double further_;                 // micro-batches after the first
  std::int64_t first_steady_ = 0;  // the first rank whose forward passes are not all warm-up
  std::int64_t count_ = 0;         // ranks
  // In order: the first and the last of equal neighbours, and where sums bend among them.
  boost::container::small_vector<Point, 12> points_;
  boost::container::small_vector<std::int64_t, 6> firsts_;  // ranks of those given together
};

template <class Seconds>
OneFOneB<Seconds>::OneFOneB(std::span<const AlikeRanks<Seconds>> ranks, std::int64_t micro_batches)
    : further_(static_cast<double>(micro_batches - 1)) {
  using std::max;
  for (const AlikeRanks<Seconds>& some : ranks) {
    firsts_.push_back(count_);
    count_ += some.ranks;
  }
  first_steady_ = count_ - micro_batches + 1;
  Point first;  // of equal neighbours
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const AlikeRanks<Seconds>& some = ranks[i];
    if (i > 0 && some.forward == first.forward && some.backward == first.backward) continue;
    if (i > 0) add_neighbours(first, firsts_[i] - first.rank);
    const Point before = points_.empty() ? Point{} : points_.back();
    first = {.rank = firsts_[i],
             .forward = some.forward,
             .backward = some.backward,
             .all_forward = before.all_forward + some.forward,
             .all_backward = before.all_backward + some.backward,
             .longest_forward = max(before.longest_forward, some.forward)};
  }
  add_neighbours(first, count_ - first.rank);
  find_chains();
}

template <class Seconds>
void OneFOneB<Seconds>::add_neighbours(const Point& first, std::int64_t ranks) {
  points_.push_back(first);
  const std::int64_t last = first.rank + ranks - 1;
  for (const std::int64_t bend : {first_steady_ - 1, first_steady_}) {
    if (first.rank < bend && bend < last) points_.push_back(further(first, bend - first.rank));
  }
  if (ranks > 1) points_.push_back(further(first, ranks - 1));
}

// The point so many equal ranks on.
template <class Seconds>
typename OneFOneB<Seconds>::Point OneFOneB<Seconds>::further(const Point& point,
                                                             std::int64_t ranks) {
  return {.rank = point.rank + ranks,
          .forward = point.forward,
          .backward = point.backward,
          .all_forward = point.all_forward + static_cast<double>(ranks) * point.forward,
          .all_backward = point.all_backward + static_cast<double>(ranks) * point.backward,
          .longest_forward = point.longest_forward};
}

// What a chain does before the end of a step is the same whichever rank it ends on.
template <class Seconds>
void OneFOneB<Seconds>::find_chains() {
  using std::max;
  Seconds deepest = 0;  // the best of the detours that begin a step, from the rank on
  for (Point& s : std::views::reverse(points_)) {
    s.spare = std::min(further_, static_cast<double>(count_ - 1 - s.rank));
    deepest = max(deepest, s.both() + s.spare * s.longest_forward);
    const double steady = further_ - 1 - s.spare;
    s.to_last = -std::numeric_limits<double>::infinity();
    if (steady >= 0) s.to_last = deepest - s.before() + steady * (s.forward + s.backward);
  }
  Seconds longest = -std::numeric_limits<double>::infinity();
  for (Point& last : points_) {
    longest = max(longest, last.to_last);
    last.to_last = max(longest, further_ * last.longest_forward);
  }
}

template <class Seconds>
Seconds OneFOneB<Seconds>::end(std::size_t i) const {
  const std::int64_t rank = firsts_[i];
  const auto known = std::ranges::find(points_, rank, &Point::rank);
  if (known != points_.end()) return end_at(static_cast<std::size_t>(known - points_.begin()));
  OneFOneB with_rank = *this;
  return with_rank.end_at(with_rank.insert(rank));
}

// The index of a rank among equal neighbours.
template <class Seconds>
std::size_t OneFOneB<Seconds>::insert(std::int64_t rank) {
  const auto next = std::ranges::upper_bound(points_, rank, {}, &Point::rank);
  const Point own = further(*std::prev(next), rank - std::prev(next)->rank);
  const auto place = points_.insert(next, own);
  find_chains();
  return static_cast<std::size_t>(place - points_.begin());
}

template <class Seconds>
Seconds OneFOneB<Seconds>::end_at(std::size_t own) const {
  using std::max;
  Seconds end = 0;
  Seconds longest = 0;  // backward, of the rank's own and deeper ones
  for (std::size_t deepest = own; deepest < points_.size(); ++deepest) {
    const Point& last = points_[deepest];
    longest = max(longest, last.backward);
    const Seconds back = max(last.to_last + last.spare * longest,
                             last.spare * last.longest_forward + further_ * longest);
    end = max(end, last.both() + back);
  }
  return end - (points_[own].all_backward - points_[own].backward);
}

template <class Seconds>
[[gnu::always_inline]] inline void finish(std::span<const AlikeRanks<Seconds>> ranks,
                                          std::int64_t micro_batches,
                                          std::span<const std::size_t> some,
                                          std::vector<Seconds>& ends) {
  const OneFOneB<Seconds> closed(ranks, micro_batches);
  for (const std::size_t i : some) ends.push_back(closed.end(i));
}

}  // namespace

void finish_one_f_one_b(std::span<const AlikeRanks<double>> ranks,
                        std::int64_t micro_batches,
                        std::span<const std::size_t> some,
                        std::vector<double>& ends) {
  finish(ranks, micro_batches, some, ends);
}

ZEROPLAN_WIDEST_VECTORS
void finish_one_f_one_b(std::span<const AlikeRanks<Lanes>> ranks,
                        std::int64_t micro_batches,
                        std::span<const std::size_t> some,
                        std::vector<Lanes>& ends) {
  finish(ranks, micro_batches, some, ends);
}

}  // namespace zeroplan
