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
  /// Ranks with all their micro-batches; equal neighbours need not be joined.
  OneFOneB(std::span<const AlikeRanks> ranks, std::int64_t micro_batches);

  /// Seconds until the last pass of a rank has ended.
  double end(std::int64_t rank) const;

 private:
  // A rank, and sums over it and those before it.
  struct Point {
    std::int64_t rank = 0;
    double forward = 0;
    double backward = 0;
    double all_forward = 0;
    double all_backward = 0;
    double longest_forward = 0;

    double before_forward() const { return all_forward - forward; }
    double before_backward() const { return all_backward - backward; }
  };
  using Points = boost::container::small_vector<Point, 12>;

  // Of the rank at points[own].
  double end(const Points& points, std::size_t own) const;

  static Point further(Point point, std::int64_t ranks);

  // Adds a rank to the points where it is not among them. Its index.
  static std::size_t with_point(std::int64_t rank, Points& points);

  // Passes of a rank's warm-up, and of its cool-down, beside the one that a chain goes through.
  double spare(const Point& at) const {
    return static_cast<double>(std::min(micro_batches_ - 1, count_ - 1 - at.rank));
  }

  std::int64_t micro_batches_;
  std::int64_t count_ = 0;  // ranks
  Points points_;           // in order: the first and the last of equal neighbours, and bends
};

}  // namespace zeroplan
