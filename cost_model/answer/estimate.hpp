#pragma once
// The front door of the cost model: what one layout needs on each pipeline stage, and whether that
// fits.

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "cost_model/answer/stage_memory.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// `tight`: capacity lies inside the band of the prediction.
enum class Verdict { fits, tight, does_not_fit };

template <>
struct Spellings<Verdict> {
  static constexpr std::array<std::string_view, 3> value{"fits", "tight", "does_not_fit"};
};

struct Estimate {
  std::vector<StageMemory> stages;  // each at its own peak
  std::size_t worst = 0;            // index of the stage that needs most
  Bytes capacity;
  Bytes low, high;    // band of the worst stage's device bytes
  Bytes host_a_node;  // offloaded by all GPUs of a node, each as the stage that offloads most
  // The phases of the worst stage in a run from its start, where the allocator was replayed; the
  // last is of loading a checkpoint.
  std::vector<PhasePeak> phases;
  // What the worst stage reserves in a run that resumes from a checkpoint, where replayed.
  Bytes resumed;
  double fit_probability = 0;
  Verdict verdict = Verdict::does_not_fit;

  const StageMemory& peak() const { return stages[worst]; }
  Bytes device() const { return peak().memory.device(); }
  Bytes headroom() const { return capacity - device(); }
  /// Device bytes of the worst stage in a run that resumes from a checkpoint.
  Bytes resumed_device() const { return device() - peak().memory.reserved() + resumed; }
};

/// Memory of every stage of a legal problem (see legality.hpp), the worst first found, and the
/// verdict, which uses half_band.
Estimate estimate(const Problem& problem, const Evaluator& evaluator);

/// What estimate says of the worst stage, from those stages alone that can be it: of neighbours
/// that hold alike layers the first keeps most micro-batches in flight.
struct WorstStage {
  std::size_t stage = 0;
  Bytes device;
  Verdict verdict = Verdict::does_not_fit;
};
WorstStage worst_stage(const PlanPoint& point);
/// The bytes of the worst stage, or fewer, so that no narrower sharding group needs fewer but for
/// what the gradient buffer is padded to.
Bytes least_device(const PlanPoint& point);
/// No more than that, however many of the layers repeat whole; on Megatron-Core.
Bytes least_repeating_device(const PlanPoint& point);
inline WorstStage worst_stage(const Problem& problem, const Evaluator& evaluator) {
  return worst_stage(evaluator.pieces(problem).point());
}

/// What estimate says, with the allocator replayed instead of estimated, where the runtime has one:
/// from the stage that allocates most downwards, until none that is left is likely to need more.
Estimate played_estimate(const Problem& problem, const Evaluator& evaluator);

/// What played_estimate says where its verdict is `fits`, without a run from a checkpoint: nothing
/// as soon as one stage is known to be too large.
std::optional<Estimate> played_where_it_fits(const Problem& problem, const Evaluator& evaluator);

/// Adds a run that resumes from a checkpoint, on the worst stage.
void play_resumed(const Problem& problem, const Evaluator& evaluator, Estimate& played);

/// What no replay undercuts: device bytes without any that the allocator wastes, and the best
/// verdict that is left with these. Where a stage needs more than `enough`, that is enough to know.
WorstStage floor_of_replay(const Problem& problem,
                           const Evaluator& evaluator,
                           std::optional<Bytes> enough = {});

/// What no stage may need more of on a device with so much, if a layout is to fit with its whole
/// band: whichever stage is the worst needs as much, and its band is at least a part of that.
Bytes most_that_fits(const RuntimeSpec& runtime, Bytes capacity);

/// Half width of the band of the prediction, two standard deviations, by the parts that the runtime
/// is known to be off by (RuntimeCode::memory_band).
Bytes half_band(const Problem& problem, const StageBytes& peak);

}  // namespace zeroplan
