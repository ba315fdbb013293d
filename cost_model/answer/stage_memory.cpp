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
                   const Evaluator& evaluator,
                   const Stage& stage,
                   std::size_t rank) {
  const std::vector<Stage>& own = evaluator.pieces(problem).stages();
  return rank < own.size() && own[rank] == stage;
}

// The highest moment of a step, and of all before the first step; the latter is empty where it
// cannot be higher.
struct StageMoments {
  Moment step;
  Moment construction;

  bool highest_at_construction() const {
    return construction.live.allocated() > step.live.allocated();
  }
  const Moment& highest() const { return highest_at_construction() ? construction : step; }
};

StageMoments moments_of_stage(const Problem& problem,
                              const Evaluator& evaluator,
                              const Stage& stage,
                              std::int64_t index,
                              const RankStates& share,
                              bool known) {
  if (known && code_of(problem).sums_blocks && !is_megatron_fsdp(problem)) {
    const LayoutPieces pieces = evaluator.pieces(problem);
    const auto place = static_cast<std::size_t>(index);
    const PassesOfStage& own = pieces.megatron_passes(place);
    Footprint passes = own.passes;
    passes.left[Category::activations] += pieces.megatron_kept(pieces.run_of(place));
    return {highest_moment(share.resident + own.resident, passes, share.optimizer_step),
            share.construction};
  }
  const StageProgram program = evaluator.stage_program(problem, stage);
  StageMoments moments{fold_step(program, representative_passes(problem, index)),
                       share.construction};
  if (code_of(problem).peaks_at_start) {
    const Block start = evaluator.startup(problem, stage, program).construction;
    moments.construction = fold(start, start.forward, Phase::init).peak;
  }
  return moments;
}

StageMemory memory_of(const Problem& problem,
                      const Evaluator& evaluator,
                      const Stage& stage,
                      std::int64_t index,
                      const RankStates& share,
                      bool known) {
  const StageMoments moments = moments_of_stage(problem, evaluator, stage, index, share, known);
  const Bytes reserved = usually_reserved(problem, moments.step.live.allocated());
  const Moment& moment = moments.highest();
  StageMemory result{.stage = index,
                     .layers = layer_count(stage),
                     .phase = moment.phase,
                     .tensor = moment.tensor,
                     .memory = moment.live,
                     .states = share.states,
                     .host = host_memory(problem, evaluator.weights(), stage, index)};
  MemoryBreakdown& m = result.memory;
  m[Category::fragmentation] = std::max(Bytes{}, reserved - m.allocated());
  m[Category::communicators] = share.communicators + token_buffer_bytes(problem);
  m[Category::context] = context_bytes(problem);
  return result;
}

}  // namespace

std::vector<LiveTensors> live_tensors(const Problem& problem,
                                      const Evaluator& evaluator,
                                      const Stage& stage,
                                      std::int64_t index) {
  const StageProgram program = evaluator.stage_program(problem, stage);
  const RankStates share = rank_states(problem, evaluator.weights(), stage);
  if (moments_of_stage(problem, evaluator, stage, index, share, false).highest_at_construction()) {
    return live_at_highest(evaluator.startup(problem, stage, program).construction);
  }
  Tensors live = kinds_of(program.resident);
  const Tensors made = live_at_highest(timeline(program, representative_passes(problem, index)));
  live.insert(live.end(), made.begin(), made.end());
  return live;
}

std::int64_t answered_rank(const Problem& problem, const Evaluator& evaluator, const Stage& stage) {
  const auto own = code_of(problem).answered_rank;
  return own == nullptr ? 0 : own(problem, evaluator.weights(), stage);
}

StageMemory stage_memory(const Problem& problem,
                         const Evaluator& evaluator,
                         const Stage& stage,
                         std::int64_t index) {
  const auto rank = static_cast<std::size_t>(index);
  if (is_remembered(problem, evaluator, stage, rank)) {
    const LayoutPieces known = evaluator.pieces(problem);
    const RankStates& share = known.point().share(known.run_of(rank));
    return memory_of(problem, evaluator, stage, index, share, true);
  }
  const RankStates share = rank_states(problem, evaluator.weights(), stage);
  return memory_of(problem, evaluator, stage, index, share, false);
}

StageBytes stage_bytes(const StageMemory& s) {
  return {.reserved = s.memory.reserved(),
          .outside = s.memory[Category::communicators] + s.memory[Category::context],
          .activations = s.memory[Category::activations],
          .states = s.states.total()};
}

StageBytes stage_bytes(const PlanPoint& point, std::size_t run) {
  const LayoutPieces& known = point.layout();
  const Problem& problem = known.problem();
  if (code_of(problem).sums_blocks) return megatron_stage_bytes(point, run);
  const std::size_t index = known.firsts()[run];
  const Stage& stage = known.stages()[index];
  const auto rank = static_cast<std::int64_t>(index);
  const std::optional<Bytes> asked =
      code_of(problem).peaks_at_start
          ? std::nullopt
          : known.evaluator().highest_of_step(problem, stage, rank, point.share(run).states);
  if (!asked) return stage_bytes(stage_memory(problem, known.evaluator(), stage, rank));
  return {.reserved = usually_reserved(problem, *asked),
          .outside = point.sums(run).outside + token_buffer_bytes(problem),
          .states = point.sums(run).states};
}

namespace {

// What a rank runs, and what its allocator may take of the device.
struct RankRun {
  RankRun(const Problem& problem,
          const Evaluator& evaluator,
          const Stage& stage,
          const StageMemory& memory)
      : program(evaluator.stage_program(problem, stage)),
        startup(evaluator.startup(problem, stage, program)),
        order(representative_passes(problem, memory.stage)),
        config(code_of(problem).allocator(problem)),
        left(problem.cluster.gpu.memory - outside_of(memory)) {}

  static Bytes outside_of(const StageMemory& memory) {
    return memory.memory[Category::communicators] + memory.memory[Category::context];
  }

  Replay on(Bytes capacity, Start start, Bytes most = unlimited) const {
    AllocatorConfig limited = config;
    limited.capacity = capacity;
    return replay(program, startup, order, limited, start, most);
  }

  StageProgram program;
  Startup startup;
  std::vector<Pass> order;
  AllocatorConfig config;
  Bytes left;
};

void take(const Replay& played, StageMemory& memory) {
  memory.phases = played.phases;
  const Bytes asked = memory.memory.allocated();
  memory.memory[Category::fragmentation] = std::max(Bytes{}, played.peak_reserved() - asked);
  memory.unsplit_blocks = std::max(Bytes{}, played.peak_allocated() - asked);
}

}  // namespace

// A full device makes the allocator return what it caches, and that may be enough. A device that is
// never full changes nothing.
Replay run_of(const Problem& problem,
              const Evaluator& evaluator,
              const Stage& stage,
              const StageMemory& memory,
              Start start) {
  const RankRun run(problem, evaluator, stage, memory);
  if (memory.memory.allocated() <= run.left) {
    Replay played = run.on(run.left, start);
    if (!played.out_of_memory) return played;
  }
  return run.on(run.config.capacity, start);
}

void play_allocator(const Problem& problem,
                    const Evaluator& evaluator,
                    const Stage& stage,
                    StageMemory& memory) {
  take(run_of(problem, evaluator, stage, memory, Start::fresh), memory);
}

bool play_up_to(Bytes most,
                const Problem& problem,
                const Evaluator& evaluator,
                const Stage& stage,
                StageMemory& memory) {
  most -= RankRun::outside_of(memory);
  if (memory.memory.allocated() > most) return false;
  const RankRun run(problem, evaluator, stage, memory);
  const Replay played = run.on(run.left, Start::fresh, most);
  if (played.out_of_memory) return false;
  take(played, memory);
  return true;
}

}  // namespace zeroplan
