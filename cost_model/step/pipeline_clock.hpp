#pragma once
// When the ranks of a pipeline finish, asked again and again with other times.

#include <array>
#include <map>
#include <span>
#include <vector>

#include "cost_model/problem.hpp"
#include "cost_model/step/ordered_passes.hpp"

namespace zeroplan {

/// The passes of all ranks, where neighbours that take the same stand together.
struct PassesOfRanks {
  std::vector<std::int64_t> ranks;  // of each run of neighbours
  std::vector<PassTime> passes;     // of the chunks of one of them, run by run

  void clear() {
    ranks.clear();
    passes.clear();
  }
};

/// When the last pass of each rank ends, by what is remembered of the schedule. Not for use by
/// several threads at once.
class PipelineClock {
 public:
  /// Of each run, the rank that ends last. Valid until the next call.
  const std::vector<double>& finished(const Problem& problem,
                                      const PassesOfRanks& passes,
                                      double message) {
    return finished(problem, {&passes, 1}, message).front();
  }

  /// The same of each of at most OrderedPasses::together timings of the same runs, which cost
  /// little more than one of them where passes are run.
  std::span<const std::vector<double>> finished(const Problem& problem,
                                                std::span<const PassesOfRanks> timings,
                                                double message);

 private:
  using Ends = std::array<std::vector<double>, OrderedPasses::together>;  // of each timing

  void play(const Problem& problem, std::span<const PassesOfRanks> timings, double message);
  const OrderedPasses& order(const Pipeline& pipeline);

  std::map<Pipeline, OrderedPasses> orders_;
  std::size_t bytes_ = 0;  // of the orders
  Ends finished_, more_finished_, of_runs_;
  // The passes of each rank with what blocking sends add.
  std::array<std::vector<PassTime>, OrderedPasses::together> exchanged_;
};

}  // namespace zeroplan
