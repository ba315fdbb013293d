#pragma once
// When the passes of all ranks end, by a list of them in an order in which each can run. The list
// depends on the schedule alone: it is made once and timed as often as asked.

#include <array>
#include <optional>
#include <vector>

#include "cost_model/pipeline/stage_time.hpp"
#include "cost_model/schedule/order.hpp"

namespace zeroplan {

/// A pass, or the last of those that run as one: it ends `duration` after the rank's pass before
/// and after the result that it reads from another rank.
struct PassOperation {
  using Index = std::uint32_t;
  Index before;
  Index reads;
  Index duration;  // of durations
};

class OrderedPasses {
 public:
  /// The passes of a legal schedule. Time and memory grow with their number.
  explicit OrderedPasses(const Pipeline& pipeline);

  /// When each rank's last pass ends, to the last digit what the graph of the same passes gives.
  /// Several timings cost little more than one of them.
  /// `passes`: of each rank's chunks, rank by rank.
  /// `message`: seconds that results of other ranks are on their way.
  template <class Seconds>
  void finish(const std::vector<PassTimeOf<Seconds>>& passes,
              double message,
              std::vector<Seconds>& finished) const {
    std::vector<Seconds> chains;
    finish(passes, message, {}, finished, chains);
  }

  /// For each timing a rank, or none.
  template <class Seconds>
  using RankOfEach = std::array<std::optional<std::size_t>, lanes_in<Seconds>>;

  /// When each rank's last pass ends, and, where `through` names a rank, the longest chain to that
  /// end, of passes that wait for one another, that goes through the pass of rank `through` in
  /// mid-step; else no chains.
  template <class Seconds>
  void finish(const std::vector<PassTimeOf<Seconds>>& passes,
              double message,
              const RankOfEach<Seconds>& through,
              std::vector<Seconds>& finished,
              std::vector<Seconds>& chains) const;

  /// The size of the list of passes, in bytes.
  std::size_t size() const { return operations_.size() * sizeof(PassOperation); }

 private:
  using Index = PassOperation::Index;

  Index single(std::int64_t rank, const Pass& pass) const;
  template <class Seconds>
  bool keep_chains(const RankOfEach<Seconds>& through,
                   const Seconds* durations,
                   double message,
                   Seconds* ends) const;

  std::int64_t ranks_;
  std::int64_t chunks_;
  std::size_t kinds_;  // of passes: two where no backward pass is split
  std::vector<PassOperation> operations_;
  std::vector<std::pair<Index, Index>> sums_;  // of durations
  std::vector<Index> middle_;                  // of each rank
  std::vector<Index> last_;                    // of each rank
};

}  // namespace zeroplan
