#pragma once
// When the passes of all ranks end, by a list of them in an order in which each can run. The list
// depends on the schedule alone: it is made once and timed as often as asked.

#include <array>
#include <span>
#include <vector>

#include "cost_model/schedule/order.hpp"
#include "cost_model/step/stage_time.hpp"

namespace zeroplan {

/// A pass, or the last of those that run as one: it ends `duration` after the rank's pass before
/// and after the result that it reads from another rank.
struct PassOperation {
  using Index = std::uint32_t;
  Index before;
  Index reads;
  Index duration;  // of durations
};

/// A number of each of several timings, side by side as vector instructions read them.
template <std::size_t width>
struct alignas(width * sizeof(double)) EachTiming : std::array<double, width> {};

class OrderedPasses {
 public:
  /// The passes of a legal schedule. Time and memory grow with their number.
  explicit OrderedPasses(const Pipeline& pipeline);

  /// When each rank's last pass ends, to the last digit what the graph of the same passes gives.
  /// `passes`: of each rank's chunks, rank by rank.
  /// `message`: seconds that results of other ranks are on their way.
  void finish(const std::vector<PassTime>& passes,
              double message,
              std::vector<double>& finished) const {
    finish({&passes, 1}, message, {&finished, 1});
  }

  /// How many timings of the passes are made for little more than one of them.
  static constexpr std::size_t together = 8;

  /// The same of each of at most so many.
  void finish(std::span<const std::vector<PassTime>> timings,
              double message,
              std::span<std::vector<double>> finished) const;

  /// Of the list, in bytes.
  std::size_t size() const { return operations_.size() * sizeof(PassOperation); }

 private:
  using Index = PassOperation::Index;

  template <std::size_t width>
  void finish_side_by_side(std::span<const std::vector<PassTime>> timings,
                           double message,
                           std::span<std::vector<double>> finished) const;

  Index single(std::int64_t rank, const Pass& pass) const;

  std::int64_t ranks_;
  std::int64_t chunks_;
  std::size_t kinds_;  // of passes: two where no backward pass is split
  std::vector<PassOperation> operations_;
  std::vector<std::pair<Index, Index>> sums_;  // of durations
  std::vector<Index> last_;                    // of each rank
};

}  // namespace zeroplan
