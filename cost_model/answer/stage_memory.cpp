// How much does a pipeline stage need, and when? Front door: stage_memory.
#include "cost_model/answer/stage_memory.hpp"

#include <algorithm>

#include "cost_model/program/fold.hpp"
#include "cost_model/states/overheads.hpp"

namespace zeroplan {
namespace {

using Tensors = std::vector<LiveTensors>;

// Whether the stage is one of the problem's own, whose pieces are remembered.
bool is_remembered(const Problem& problem,
                   const Remembered& remembered,
                   const Stage& stage,
                   std::size_t rank) {
  const std::vector<Stage>& own = remembered.of(problem).stages();
  return rank < own.size() && own[rank] == stage;
}

// The highest of a step, and of all before the first one; the latter is empty where it cannot be
// higher.
struct StageMoments {
  Moment step;
  Moment construction;

  bool highest_at_construction() const {
    return construction.live.allocated() > step.live.allocated();
  }
  const Moment& highest() const { return highest_at_construction() ? construction : step; }
};

StageMoments moments_of_stage(const Problem& problem,
                              const Remembered& remembered,
                              const Stage& stage,
                              std::int64_t index,
                              const StateShare& share,
                              bool known) {
  if (known && code_of(problem).sums_blocks) {
    const PassesOfStage& own =
        remembered.of(problem).megatron_passes(static_cast<std::size_t>(index));
    return {highest_moment(share.resident + own.resident, own.passes, share.optimizer_step),
            share.construction};
  }
  const StageProgram program = remembered.stage_program(problem, stage);
  StageMoments moments{fold_step(program, representative_passes(problem, index)),
                       share.construction};
  if (code_of(problem).peaks_at_start) {
    const Block start = remembered.startup(problem, stage, program).construction;
    moments.construction = fold(start, start.forward, Phase::init).peak;
  }
  return moments;
}

StageMemory memory_of(const Problem& problem,
                      const Remembered& remembered,
                      const Stage& stage,
                      std::int64_t index,
                      const StateShare& share,
                      bool known) {
  const StageMoments moments = moments_of_stage(problem, remembered, stage, index, share, known);
  const Bytes reserved = usually_reserved(problem, moments.step.live.allocated());
  const Moment& moment = moments.highest();
  StageMemory result{.stage = index,
                     .layers = layer_count(stage),
                     .phase = moment.phase,
                     .tensor = moment.tensor,
                     .memory = moment.live,
                     .states = share.states,
                     .host = host_memory(problem, remembered.weights(), stage, index)};
  MemoryBreakdown& m = result.memory;
  m[Category::fragmentation] = std::max(Bytes{}, reserved - m.allocated());
  m[Category::communicators] = share.communicators;
  m[Category::context] = context_bytes(problem);
  return result;
}

}  // namespace

std::vector<LiveTensors> live_tensors(const Problem& problem,
                                      const Remembered& remembered,
                                      const Stage& stage,
                                      std::int64_t index) {
  const StageProgram program = remembered.stage_program(problem, stage);
  const StateShare share = state_share(problem, remembered.weights(), stage);
  if (moments_of_stage(problem, remembered, stage, index, share, false).highest_at_construction()) {
    return live_at_highest(remembered.startup(problem, stage, program).construction);
  }
  Tensors live;
  for (const TensorSpec& spec : program.resident) {
    live.push_back({spec.name, spec.category, 1, spec.bytes});
  }
  const Tensors made = live_at_highest(timeline(program, representative_passes(problem, index)));
  live.insert(live.end(), made.begin(), made.end());
  return live;
}

StageMemory stage_memory(const Problem& problem,
                         const Remembered& remembered,
                         const Stage& stage,
                         std::int64_t index) {
  const auto rank = static_cast<std::size_t>(index);
  if (is_remembered(problem, remembered, stage, rank)) {
    const Recalled known = remembered.of(problem);
    const StateShare& share = known.exchanged().share(known.run_of(rank));
    return memory_of(problem, remembered, stage, index, share, true);
  }
  const StateShare share = state_share(problem, remembered.weights(), stage);
  return memory_of(problem, remembered, stage, index, share, false);
}

StageBytes stage_bytes(const StageMemory& s) {
  return {.reserved = s.memory.reserved(),
          .outside = s.memory[Category::communicators] + s.memory[Category::context],
          .activations = s.memory[Category::activations],
          .states = s.states.total()};
}

StageBytes stage_bytes(const Exchanged& exchanged, std::size_t run) {
  const Recalled& known = exchanged.layout();
  const Problem& problem = known.problem();
  if (code_of(problem).sums_blocks) return megatron_stage_bytes(exchanged, run);
  const std::size_t index = known.firsts()[run];
  const Stage& stage = known.stages()[index];
  const auto rank = static_cast<std::int64_t>(index);
  const std::optional<Bytes> asked =
      code_of(problem).peaks_at_start
          ? std::nullopt
          : known.remembered().highest_of_step(problem, stage, rank, exchanged.share(run).states);
  if (!asked) return stage_bytes(stage_memory(problem, known.remembered(), stage, rank));
  return {.reserved = usually_reserved(problem, *asked),
          .outside = exchanged.sums(run).outside,
          .states = exchanged.sums(run).states};
}

Replay run_of(const Problem& problem,
              const Remembered& remembered,
              const Stage& stage,
              const StageMemory& memory,
              Start start) {
  const StageProgram program = remembered.stage_program(problem, stage);
  const Startup startup = remembered.startup(problem, stage, program);
  const std::vector<Pass> order = representative_passes(problem, memory.stage);
  AllocatorConfig config = code_of(problem).allocator(problem);
  Replay played = replay(program, startup, order, config, start);
  // A full device makes the allocator return what it caches, and that may be enough.
  config.capacity = problem.cluster.gpu.memory - memory.memory[Category::communicators] -
                    memory.memory[Category::context];
  if (played.peak_reserved() > config.capacity && memory.memory.allocated() <= config.capacity) {
    const Replay squeezed = replay(program, startup, order, config, start);
    if (!squeezed.out_of_memory) played = squeezed;
  }
  return played;
}

void play_allocator(const Problem& problem,
                    const Remembered& remembered,
                    const Stage& stage,
                    StageMemory& memory) {
  const Replay played = run_of(problem, remembered, stage, memory, Start::fresh);
  memory.phases = played.phases;
  const Bytes asked = memory.memory.allocated();
  memory.memory[Category::fragmentation] = std::max(Bytes{}, played.peak_reserved() - asked);
  memory.unsplit_blocks = std::max(Bytes{}, played.peak_allocated() - asked);
}

}  // namespace zeroplan
