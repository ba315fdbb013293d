#pragma once
// How long one optimizer step takes: the front door of time, as estimate.hpp is that of memory.

#include <string_view>

#include "cost_model/kernel/flops.hpp"
#include "cost_model/pipeline/pipeline.hpp"
#include "cost_model/pipeline/straggling.hpp"
#include "cost_model/remember/layout_pieces.hpp"

namespace zeroplan {

/// One optimizer step, in seconds. The parts add up on the rank that works longest: seconds =
/// computed + exposed + bubble + straggling.
struct StepTime {
  double seconds = 0;
  double computed = 0;    // kernels, or the host where it is slower, and the optimizer
  double exposed = 0;     // communication that nothing hides
  double bubble = 0;      // waiting for other pipeline ranks
  double straggling = 0;  // waiting for the slowest of many GPUs
  double optimizer = 0;   // part of computed
  StepFlops flops;        // over all GPUs, by TrainingSpec::scores

  std::vector<StageTime> stages;  // one a pipeline rank
  std::vector<RankTime> ranks;    // the same ranks in the schedule

  /// Idle time over the time that the busiest rank works: (p-1)/m in the ideal case (Narayanan et
  /// al. 2021, section 2.2).
  double bubble_fraction() const { return bubble / (computed + exposed); }
};

/// When the constants of the law of step time were last fitted: YYYY-MM-DD.
std::string_view constants_date();

/// Assumes a legal problem.
StepTime step_time(const Problem& problem, const Evaluator& evaluator);

/// The seconds of step_time alone, for a search: what they are made of is not kept, and a pipeline
/// that was just simulated with the same passes is not simulated again.
double step_seconds(const PlanPoint& point);
inline double step_seconds(const Problem& problem, const Evaluator& evaluator) {
  return step_seconds(evaluator.pieces(problem).point());
}

/// What updates add to the step of a layout, in one timing or in several.
template <class Seconds>
struct AddedByUpdates {
  template <class T>
  using OfRuns = boost::container::small_vector<T, 4>;

  OfRuns<DirectionsOf<Seconds>> passes;  // to the passes of each run, as parts of them
  OfRuns<Seconds> reductions;            // after the last pass of each run
  Seconds updated = 0;                   // by all ranks, once all have reduced
};

/// The step_seconds of points of one layout that differ in the exchange alone: where passes have to
/// be run, several at once cost little more than one.
class StepLanes {
 public:
  /// Adds a point while its exchange is the problem's. Its layout must outlive the answer.
  void add(const PlanPoint& point);
  /// Step seconds of each point that was added, in that order.
  const std::vector<double>& seconds();
  /// Forgets all points, before those of another layout are added.
  void clear();

 private:
  struct Points {
    std::vector<std::size_t> places;  // among all that were added
    std::vector<AddedByUpdates<Lanes>> added;
  };
  template <class Finished>
  void find(const Points& points, const Finished& finished_of);

  const LayoutPieces* layout_ = nullptr;
  std::size_t size_ = 0;
  Points late_;  // whose updates add to the passes
  Points others_;
  std::vector<Lanes> finished_;
  std::vector<double> seconds_;
};

/// Model FLOPs over what the GPUs could do in the step's time, in the unit of the training format.
double mfu(const Problem& problem, const StepTime& time);

/// All FLOPs that the hardware executes, recompute included, over what the GPUs could do in the
/// step's time, in the unit of the training format.
double hfu(const Problem& problem, const StepTime& time);

/// Model FLOPs of one GPU in a second, in 1e12.
double tflops_per_gpu(const Problem& problem, const StepTime& time);

/// Tokens of the global batch over GPUs and seconds.
double tokens_per_second_per_gpu(const Problem& problem, const StepTime& time);

}  // namespace zeroplan
