#pragma once
// How long the passes of all pipeline ranks take together: the schedule as a graph of operations.

#include <array>
#include <map>
#include <span>
#include <vector>

#include "cost_model/step/ordered_passes.hpp"

namespace zeroplan {

/// One pipeline rank in a step, in seconds.
struct RankTime {
  double finished = 0;  // when its last pass ends
  double busy = 0;
  double slack = 0;  // how late any one of its passes may be without making the step late
};

struct PipelineTime {
  double seconds = 0;   // until the last rank has finished
  double messages = 0;  // of them, what there would not be if messages took no time
  std::vector<RankTime> ranks;
};

/// A pass, and when it runs: seconds from the start of the step.
struct TimedPass {
  Pass pass;
  double start = 0;
  double end = 0;
};

/// When each pass of a step of so many micro-batches runs, rank by rank in its order, as
/// simulate_pipeline runs them.
std::vector<std::vector<TimedPass>> timed_passes(const Problem& problem,
                                                 const std::vector<StageTime>& ranks,
                                                 double message,
                                                 std::int64_t micro_batches);

/// Runs the passes of a legal layout's schedule: each rank in its order, each pass after those
/// whose results it reads, `message` seconds after them where they are on another rank. `ranks`:
/// the passes of each pipeline rank. Long steps are run until they repeat.
PipelineTime simulate_pipeline(const Problem& problem,
                               const std::vector<StageTime>& ranks,
                               double message);

/// Seconds from the end of a pass until its result has reached a neighbour of the pipeline.
double message_seconds(const Problem& problem);

/// Whether a rank that has finished a pass waits until its neighbours have its result and it has
/// theirs, as 1F1B does in Megatron-Core (core/pipeline_parallel/schedules.py
/// send_forward_recv_backward) and DeepSpeed (runtime/pipe/engine.py). Interleaved schedules send
/// while they compute since Megatron-Core has overlap_p2p_comm, and so does PyTorch
/// (torch/distributed/pipelining/schedules.py).
bool sends_block(const Problem& problem);

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
