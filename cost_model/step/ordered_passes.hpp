#pragma once
// When the passes of all ranks end, by a list of them in an order in which each can run. The list
// depends on the schedule alone: it is made once and timed as often as asked.

#include <vector>

#include "cost_model/schedule/order.hpp"
#include "cost_model/step/stage_time.hpp"

namespace zeroplan {

/// Not for use by several threads at once.
class OrderedPasses {
 public:
  /// The passes of a legal schedule. Time and memory grow with their number.
  explicit OrderedPasses(const Pipeline& pipeline);

  /// When each rank's last pass ends, to the last digit what the graph of the same passes gives.
  /// `passes`: of each rank's chunks, rank by rank.
  /// `message`: seconds that results of other ranks are on their way.
  void finish(const std::vector<PassTime>& passes,
              double message,
              std::vector<double>& finished) const;

  /// Of the list, in bytes.
  std::size_t size() const { return operations_.size() * sizeof(Operation); }

 private:
  using Index = std::uint32_t;

  // A pass, or the last of those that run as one: it ends `duration` after the rank's pass before
  // and after the result that it reads from another rank.
  struct Operation {
    Index before;
    Index reads;
    Index duration;  // of durations
  };

  // Sets the seconds by rank, chunk and kind of pass; then nothing; then sums of two of them.
  void time(const std::vector<PassTime>& passes) const;
  Index single(std::int64_t rank, const Pass& pass) const;

  std::int64_t ranks_;
  std::int64_t chunks_;
  std::vector<Operation> operations_;
  std::vector<std::pair<Index, Index>> sums_;  // of durations
  std::vector<Index> last_;                    // of each rank
  mutable std::vector<double> durations_;      // while the list is timed
  mutable std::vector<double> ends_;           // of each operation
};

}  // namespace zeroplan
