#pragma once
// When the ranks of a pipeline finish, asked again and again with other times.

#include <map>
#include <tuple>
#include <vector>

#include "cost_model/pipeline/ordered_passes.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// The passes of all ranks, where neighbours that take the same stand together.
template <class Seconds>
struct PassesOfRanks {
  std::vector<std::int64_t> ranks;          // of each run of neighbours
  std::vector<PassTimeOf<Seconds>> passes;  // of the chunks of one of them, run by run

  void clear() {
    ranks.clear();
    passes.clear();
  }
};

/// When the last pass of each rank ends, by what is remembered of the schedule. Not for use by
/// several threads at once.
class PipelineClock {
 public:
  /// When each run of ranks ends, by its rank that ends last. Several timings cost little more than
  /// one of them where passes are run. Valid until the next call.
  template <class Seconds>
  const std::vector<Seconds>& finished(const Problem& problem,
                                       const PassesOfRanks<Seconds>& passes,
                                       double message);

 private:
  template <class Seconds>
  struct Scratch {
    std::vector<Seconds> finished, more_finished, chains, of_runs;
    std::vector<PassTimeOf<Seconds>> of_ranks;  // with what blocking sends add
  };

  template <class Seconds>
  const std::vector<Seconds>& play(const Problem& problem,
                                   const PassesOfRanks<Seconds>& passes,
                                   double message);
  const OrderedPasses& order(const Pipeline& pipeline);

  std::map<Pipeline, OrderedPasses> orders_;
  std::size_t bytes_ = 0;  // of the orders
  std::tuple<Scratch<double>, Scratch<Lanes>> scratch_;
};

}  // namespace zeroplan
