// How long does the pipeline take? Front door: simulate_pipeline.
#include "cost_model/pipeline/pipeline.hpp"

#include <algorithm>
#include <span>

#include "cost_model/pipeline/messages.hpp"
#include "cost_model/pipeline/pipeline_clock.hpp"
#include "cost_model/pipeline/pipeline_graph.hpp"
#include "cost_model/pipeline/rounds.hpp"

namespace zeroplan {
namespace {

PassesOfRanks<double> passes_of(const std::vector<StageTime>& ranks) {
  PassesOfRanks<double> passes;
  for (const StageTime& rank : ranks) {
    passes.ranks.push_back(1);
    passes.passes.insert(passes.passes.end(), rank.chunks.begin(), rank.chunks.end());
  }
  return passes;
}

// How busy each rank is, and its slack in the first rounds. `passes`: of each of the ranks' chunks,
// rank by rank.
std::vector<RankTime> work_of_ranks(const Problem& problem,
                                    std::vector<PassTime> passes,
                                    double message) {
  const bool blocking = sends_block(problem);
  const Rounds rounds = rounds_of(problem);
  const Pipeline few = pipeline_of(problem, rounds.few);
  if (blocking) add_exchanges(few, message, passes);
  std::vector<RankTime> ranks = PipelineGraph(few, passes, blocking ? 0 : message).run().ranks;
  const std::span<const PassTime> all = passes;
  const std::size_t chunks = passes.size() / ranks.size();
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const double round = busy_in_round(problem, rounds, all.subspan(i * chunks, chunks));
    ranks[i].busy += rounds.left * round;
  }
  return ranks;
}

}  // namespace

std::vector<std::vector<TimedPass>> timed_passes(const Problem& problem,
                                                 const std::vector<StageTime>& ranks,
                                                 double message,
                                                 std::int64_t micro_batches) {
  const bool blocking = sends_block(problem);
  const Pipeline pipeline = pipeline_of(problem, micro_batches);
  std::vector<PassTime> passes = passes_of(ranks).passes;
  if (blocking) add_exchanges(pipeline, message, passes);
  return PipelineGraph(pipeline, passes, blocking ? 0 : message).timed();
}

PipelineTime simulate_pipeline(const Problem& problem,
                               const std::vector<StageTime>& ranks,
                               double message) {
  const PassesOfRanks<double> passes = passes_of(ranks);
  PipelineTime time{.ranks = work_of_ranks(problem, passes.passes, message)};
  PipelineClock clock;
  const std::vector<double>& finished = clock.finished(problem, passes, message);
  for (std::size_t i = 0; i < time.ranks.size(); ++i) {
    time.ranks[i].finished = finished[i];
    time.seconds = std::max(time.seconds, finished[i]);
  }
  if (message > 0) {
    const std::vector<double>& without = clock.finished(problem, passes, 0);
    time.messages = time.seconds - *std::max_element(without.begin(), without.end());
  }
  return time;
}

}  // namespace zeroplan
