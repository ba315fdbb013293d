#pragma once
// Memory of one pipeline stage at the highest moment of the step.

#include <string_view>

#include "cost_model/allocator/replay.hpp"
#include "cost_model/answer/host_memory.hpp"
#include "cost_model/program/timeline.hpp"
#include "cost_model/remember/layout_pieces.hpp"
#include "cost_model/runtime/megatron/fsdp_buckets.hpp"
#include "cost_model/states/breakdown.hpp"
#include "cost_model/states/model_states.hpp"
#include "cost_model/states/overheads.hpp"

namespace zeroplan {

struct StageMemory {
  std::int64_t stage = 0;
  std::int64_t layers = 0;
  Phase phase = Phase::backward;
  std::string_view tensor;  // the allocation that reached the peak
  MemoryBreakdown memory;
  Bytes unsplit_blocks;  // of fragmentation, what torch.cuda.memory_allocated counts: blocks larger
                         // than asked
  std::vector<PhasePeak> phases;  // where replayed: then fragmentation is the allocator's, else the
                                  // median of other runs
  ModelStates states;
  HostMemory host;  // of this rank, not among the device's bytes
};

/// The tensors that are the categories up to workspace of stage_memory, category by category, byte
/// for byte, of the played step program.
std::vector<LiveTensors> live_tensors(const Problem& problem,
                                      const Evaluator& evaluator,
                                      const Stage& stage,
                                      std::int64_t index);

/// Which of the ranks of a stage stage_memory is of: the first, but where their parts differ.
std::int64_t answered_rank(const Problem& problem, const Evaluator& evaluator, const Stage& stage);

/// The breakdown of rank `index` of the pipeline at its own peak: of the folded step program where
/// there is one; else the highest of loss (where the stage holds the head), start of the backward
/// pass, and optimizer step.
StageMemory stage_memory(const Problem& problem,
                         const Evaluator& evaluator,
                         const Stage& stage,
                         std::int64_t index);

/// Reserved over allocated bytes, median of 344 ranks of 43 published B200 runs
/// (MooreThreads/SimuMax docs/b200 @4dcaae5): 1.038. Stands in for a replay of the allocator.
inline constexpr std::int64_t fragmentation_permille = 38;

/// What the allocator usually wastes on this many allocated bytes, before it is replayed; nothing
/// in the paper's arithmetic.
inline Bytes usual_fragmentation(const Problem& problem, Bytes allocated) {
  if (!has_allocator(problem)) return {};
  return Bytes{allocated.count() / 1000 * fragmentation_permille};
}

/// What the allocator usually holds after a step that allocated so much.
inline Bytes usually_reserved(const Problem& problem, Bytes allocated) {
  return allocated + usual_fragmentation(problem, allocated);
}

/// The figures of stage_memory that a verdict needs.
struct StageBytes {
  Bytes reserved;
  Bytes outside;      // communicators and context
  Bytes activations;  // where a band reads it: of the paper's arithmetic
  Bytes states;

  Bytes device() const { return reserved + outside; }
};

StageBytes stage_bytes(const StageMemory& memory);

/// The figures that a verdict needs of the first stage of a run, without the program where its
/// bytes can be summed up from what is remembered.
StageBytes stage_bytes(const PlanPoint& point, std::size_t run);

/// The figures of the first stage of a run on Megatron-Core, of which `moving` bytes come and go,
/// and `padding` of those that stay are left out.
inline StageBytes summed_stage_bytes(const PlanPoint& point,
                                     std::size_t run,
                                     Bytes moving,
                                     Bytes padding = {}) {
  const LayoutPieces& known = point.layout();
  const RankStates::Sums& sums = point.sums(run);
  const Bytes asked =
      sums.resident - padding + known.megatron_buffer_bytes(run) + std::max(Bytes{}, moving);
  return {
      .reserved = std::max(usually_reserved(known.problem(), asked), sums.construction - padding),
      .outside = sums.outside + token_buffer_bytes(known.problem()),
      .states = sums.states};
}

/// The figures that a verdict needs of the first stage of a run on Megatron-Core, whose bytes can
/// always be summed up from what is remembered.
inline StageBytes megatron_stage_bytes(const PlanPoint& point, std::size_t run) {
  const LayoutPieces& known = point.layout();
  const bool fsdp = is_megatron_fsdp(known.problem());
  const Bytes passes =
      fsdp ? known.megatron_peak(run, point.buckets(run)) : known.megatron_peak(run);
  // But for some inputs passes leave nothing behind.
  const Bytes step = point.sums(run).step + known.megatron_kept(run);
  return summed_stage_bytes(point, run, std::max(passes, step));
}

/// No more than megatron_stage_bytes of any sharding group that is no wider: Megatron-FSDP pads its
/// buckets to the group, so that whole ones are smaller there.
inline StageBytes least_megatron_stage_bytes(const PlanPoint& point, std::size_t run) {
  const LayoutPieces& known = point.layout();
  if (!is_megatron_fsdp(known.problem())) return megatron_stage_bytes(point, run);
  const Bytes passes = known.megatron_peak(run, point.least_buckets(run));
  return summed_stage_bytes(point, run, passes, point.sums(run).bucket_padding);
}

/// No more than least_megatron_stage_bytes, however many of the layers repeat whole.
inline StageBytes least_repeating_stage_bytes(const PlanPoint& point, std::size_t run) {
  const LayoutPieces& known = point.layout();
  if (!is_megatron_fsdp(known.problem())) {
    const Bytes passes = known.least_megatron_peak(run, nullptr);
    return summed_stage_bytes(point, run, std::max(passes, point.sums(run).step));
  }
  const Bytes passes = known.least_megatron_peak(run, &point.least_buckets(run));
  return summed_stage_bytes(point, run, passes, point.sums(run).bucket_padding);
}

/// The stage's program through the caching allocator. A run that resumes from a checkpoint has its
/// moments below the activations instead of where the first step left room, and loading them may
/// take more than they need. `memory` says how much of the device is not the allocator's.
Replay run_of(const Problem& problem,
              const Evaluator& evaluator,
              const Stage& stage,
              const StageMemory& memory,
              Start start);

/// Sets fragmentation, unsplit_blocks and phases by what a fresh run held; stage_memory takes the
/// median of published Megatron-Core runs instead.
void play_allocator(const Problem& problem,
                    const Evaluator& evaluator,
                    const Stage& stage,
                    StageMemory& memory);

/// What play_allocator does, where the stage needs no more than `most` of the device, which is no
/// more than it has; else false, as soon as that is known.
bool play_up_to(Bytes most,
                const Problem& problem,
                const Evaluator& evaluator,
                const Stage& stage,
                StageMemory& memory);

}  // namespace zeroplan
