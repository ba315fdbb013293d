#pragma once
// When the ranks of 1F1B finish, in closed form.

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <span>

namespace zeroplan {

/// Neighbouring ranks of a pipeline that take the same for the one chunk that each of them holds.
struct AlikeRanks {
  std::int64_t ranks = 1;
  double forward = 0;   // seconds of one micro-batch
  double backward = 0;  // the same
};

/// 1F1B whose messages take no time of their own: where sends block, they are part of the passes.
///
/// A pass ends with the longest chain of passes that wait for each other. Let such a chain stay for
/// the steady part of a step on one rank s. It comes there by the forward passes of the first
/// micro-batch, may go deeper, to a rank d, use up the forward passes of that rank's warm-up (on
/// the slowest rank so far), and come back up with the first backward passes; at the end of the
/// step it may do the mirror image of that. Any other detour exchanges as many passes of s for as
/// many of another rank, and so is one of the chains that stay there. Or it has no steady part, and
/// all forward passes, or all backward passes, run on one rank. The end is the largest sum over s
/// and the depths; each sum is linear along alike ranks, so that the first and the last of them
/// stand for all. Derived here; tested against the passes themselves.
class OneFOneB {
 public:
  /// Ranks with all their micro-batches; equal neighbours need not be given together.
  OneFOneB(std::span<const AlikeRanks> ranks, std::int64_t micro_batches);

  /// Seconds until the last pass has ended of the first of ranks[i].
  double end(std::size_t i) const;

 private:
  // A rank, and sums over it and those before it.
  struct Point {
    std::int64_t rank = 0;
    double forward = 0;
    double backward = 0;
    double all_forward = 0;
    double all_backward = 0;
    double longest_forward = 0;
    double spare = 0;    // passes of its warm-up, and of its cool-down, beside a chain's one
    double to_last = 0;  // seconds of the longest chain that goes back from here at a step's end

    double both() const { return all_forward + all_backward; }
    double before() const { return both() - forward - backward; }
  };

  void add_neighbours(const Point& first, std::int64_t ranks);
  static Point further(const Point& point, std::int64_t ranks);
  std::size_t insert(std::int64_t rank);
  void find_chains();
  double end_at(std::size_t own) const;

  double further_;                 // micro-batches after the first
  std::int64_t first_steady_ = 0;  // the first rank whose forward passes are not all warm-up
  std::int64_t count_ = 0;         // ranks
  // In order: the first and the last of equal neighbours, and where sums bend among them.
  boost::container::small_vector<Point, 12> points_;
  boost::container::small_vector<std::int64_t, 6> firsts_;  // ranks of those given together
};

}  // namespace zeroplan
