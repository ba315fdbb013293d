#pragma once
// Which layout should I use? The best ones, played, with what was looked at and why the rest is
// out.

#include <optional>

#include "planner/fit.hpp"
#include "planner/simplicity.hpp"
#include "planner/sweep/faster_split.hpp"
#include "planner/sweep/search.hpp"

namespace zeroplan {

struct SweepQuestion {
  Request request;
  TensorReach tensor_reach = TensorReach::cluster;
  Objective objective = Objective::step;
  std::size_t top = 10;  // plans to answer with; a second one where the first is not recommended
  double tie = default_tie;  // see fit
  bool all = false;          // every shape, not one plan a family; so with other objectives
  bool front = false;        // find the whole Pareto front too
  bool exhaustive = false;
  std::size_t threads = 0;          // 0: one for each core
  std::optional<Bytes> max_memory;  // of a GPU, where less than it has
};

/// One of the best: its memory played, its time as the search found it.
struct Plan {
  FitAnswer answer;
  Scored scored;  // device bytes as played
  Simplicity simplicity;
  bool equal = false;  // slower than the fastest by the tie at most
  std::optional<FasterSplit> faster_split;
};

struct SweepAnswer {
  std::vector<Plan> plans;          // best first
  std::size_t recommended = 0;      // of plans: what fit answers; of other objectives the best
  std::vector<std::size_t> pareto;  // of plans: none among them is both faster and smaller
  SearchResult search;
  std::vector<std::int64_t> gpu_counts;  // looked at
  // Where there is no plan:
  std::vector<NearestFit> nearest_fits;      // beside what fit answers, which does not fit
  std::vector<std::vector<Field>> releases;  // see fields_to_release
  std::optional<std::int64_t> fewest_gpus;   // that fit with the same fields given
  std::optional<Refusal> refusal;            // where the runtime can execute no layout at all
  std::size_t threads = 1;
  double seconds = 0;  // of the search, with the replays of the best
};

/// The whole problem of one layout that the search found.
Problem problem_of(const SweepQuestion& question, const Scored& scored);

/// With objective `step` the fastest of all, then of each family of tp, pp and ep the simplest that
/// ties with it, or of slower families with their fastest.
///
/// Objectives `step` and `headroom` use all GPUs of the request, `gpus` the fewest that do (see
/// fewest_gpus), `cost` all that halving gives.
SweepAnswer sweep(const SweepQuestion& question, const Watch& watch = {});

}  // namespace zeroplan
