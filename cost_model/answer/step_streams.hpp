#pragma once
// A step as it runs: when each block computes, each collective and message travels, and each tensor
// comes and goes, on the streams of a pipeline rank. Made from the program that is folded, with the
// seconds of the answered step.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost_model/answer/step_clock.hpp"
#include "cost_model/program/play.hpp"

namespace zeroplan {

enum class SliceKind : std::uint8_t { compute, collective, message };

template <>
struct Spellings<SliceKind> {
  static constexpr std::array<std::string_view, 3> value{"compute", "collective", "message"};
};

/// A stretch of time on one stream.
struct Slice {
  SliceKind kind = SliceKind::compute;
  std::string name;         // of the block, the optimizer, or the collective
  std::string_view stream;  // "compute", or the group that exchanges: tp, dp, pp ...
  double start = 0;         // seconds from the start of the step
  double seconds = 0;
  double exposed = 0;       // of a call: what it adds to the step
  std::int32_t pass = -1;   // among the rank's passes; -1: at the end of the step
  std::int32_t block = -1;  // position in the chunk\'s chain; -1: at its border
  TimedLoad call = {};      // of calls: `load` with their number and payload, and beside what
  bool along_pass = false;  // of no block: one of several that stand evenly in the pass
};

/// A kernel, within a slice that computes.
struct KernelSlice {
  PlayedKernel played;
  double start = 0;    // seconds from the start of the step
  double seconds = 0;  // with its part of the gaps between kernels, or of what the host holds up
  double busy = 0;     // without

  /// "fc1", "fc1 again" where recompute repeats it, "fc1 weight gradient".
  std::string name() const;
};

/// One of them, in the order of the program.
struct Occurrence {
  enum class Of : std::uint8_t { tensor, slice, kernel };
  Of of = Of::tensor;
  std::size_t index = 0;  // in `events`, `slices` or `kernels`
  double seconds = 0;     // when it is, or begins
};

/// One pipeline rank.
struct RankStreams {
  std::int64_t rank = 0;
  std::int64_t micro_batches = 0;  // of the step that is shown
  RankClock clock;
  std::vector<std::vector<std::string>> blocks;  // of each chunk, what they are called
  std::vector<Slice> slices;  // each stream's in order of time, but for calls that cross
  std::vector<KernelSlice> kernels;
  std::vector<Played> events;   // of tensors; those that are resident come first
  std::size_t first_event = 0;  // that is not of one that is resident
  std::vector<Occurrence> order;

  MemoryBreakdown resident() const;
};

/// A step of so many micro-batches (step_clock.hpp); `time` is the step time of the same problem.
/// The seconds and the exposed seconds of the calls of a load are those of the answer. Calls that
/// are waited for stop computing; of the others the exposed part does. What a pass takes beyond its
/// calls is divided between its kernels as they take; in a block without any, evenly over its
/// events. Calls that the program lacks (replicas of Megatron-Core) or writes as a row (DeepSpeed's
/// buckets) stand evenly in the passes they belong to.
RankStreams rank_streams(const Problem& problem,
                         const Evaluator& evaluator,
                         const StepTime& time,
                         std::int64_t rank,
                         std::int64_t micro_batches);

}  // namespace zeroplan
