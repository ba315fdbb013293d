// How much does a pipeline stage need, and when? Front door: stage_memory.
#include "cost_model/stage_memory.hpp"

#include <algorithm>

#include "cost_model/memory/activations.hpp"
#include "cost_model/memory/buffers.hpp"
#include "cost_model/memory/overheads.hpp"
#include "cost_model/program/fold.hpp"

namespace zeroplan {
namespace {

using Tensors = std::vector<LiveTensors>;

void add(Tensors& out, std::string_view name, Category category, Bytes bytes) {
  if (bytes != Bytes{}) out.push_back({name, category, 1, bytes});
}

struct SavedActivations {
  Bytes all;      // every micro-batch in flight
  Bytes rebuilt;  // the layer that full recompute builds again in the backward pass
};

SavedActivations saved_activations(const Problem& problem, const Stage& stage, std::int64_t index) {
  const bool full = problem.layout.recompute == Recompute::full;
  SavedActivations saved;
  for (const LayerKind kind : {LayerKind::dense, LayerKind::moe}) {
    const std::int64_t layers = layer_count(problem.model, stage, kind);
    if (layers == 0) continue;
    const Bytes layer = layer_activations(problem, kind);
    saved.all += layers * (full ? layer_input(problem) : layer);
    if (full) saved.rebuilt = std::max(saved.rebuilt, layer);
  }
  const auto chunks = static_cast<std::int64_t>(stage.chunks.size());
  const std::int64_t in_flight = chunks_in_flight(problem, index);
  saved.all = Bytes{ceil_div(saved.all.count() * in_flight, std::max<std::int64_t>(1, chunks))};
  return saved;
}

Bytes widest_backward(const Problem& problem, const Stage& stage) {
  Bytes widest;
  for (const LayerKind kind : {LayerKind::dense, LayerKind::moe}) {
    if (layer_count(problem.model, stage, kind) > 0) {
      widest = std::max(widest, backward_temporaries(problem, kind));
    }
  }
  return widest;
}

// A moment in closed form.
struct Estimated {
  Phase phase;
  std::string_view tensor;
  Tensors live;

  Moment moment() const {
    Moment sum{.phase = phase, .tensor = tensor};
    for (const LiveTensors& tensors : live) sum.live[tensors.category] += tensors.total();
    return sum;
  }
};

// The highest of backward pass, loss and optimizer step, each in closed form.
Estimated estimated_moment(const Problem& problem,
                           const WeightInventory& inventory,
                           const Stage& stage,
                           std::int64_t index,
                           const ModelStates& states) {
  const SavedActivations saved = saved_activations(problem, stage, index);
  std::vector<Estimated> moments{{Phase::backward, "saved activations", {}},
                                 {Phase::optimizer_step, "widened gradients", {}}};
  Tensors around;
  add(around, "saved activations", Category::activations, saved.all);
  add(around, "gathered parameters and reduction buckets", Category::communication_buffers,
      communication_buffers(problem, inventory, stage));
  moments[0].live = around;
  add(moments[0].live, "recomputed layer", Category::activations, saved.rebuilt);
  add(moments[0].live, "backward pass of a layer", Category::temporaries,
      widest_backward(problem, stage));
  if (problem.runtime.kind != Runtime::zero_paper) {
    add(moments[1].live, "widened gradients", Category::temporaries, states.step_gradients);
  }
  if (stage.head && problem.model.layers > 0) {
    const LossMemory loss = loss_memory(problem);
    Estimated& head = moments.emplace_back(Estimated{Phase::loss, "logits", around});
    add(head.live, "saved by the head", Category::activations, loss.saved);
    add(head.live, "logits", Category::temporaries, loss.peak - loss.saved);
  }
  Estimated highest =
      *std::max_element(moments.begin(), moments.end(), [](const Estimated& a, const Estimated& b) {
        return a.moment().live.allocated() < b.moment().live.allocated();
      });
  add(highest.live, "parameters", Category::parameters, states.parameters);
  add(highest.live, "gradients", Category::gradients, states.gradients);
  add(highest.live, "master parameters", Category::master_parameters, states.master_parameters);
  add(highest.live, "optimizer states", Category::optimizer_states, states.optimizer_states);
  add(highest.live, "workspaces", Category::workspace, workspace(problem, inventory, stage));
  return highest;
}

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
  const WeightInventory& weights = remembered.weights();
  if (!has_step_program(problem)) {
    return {.step = estimated_moment(problem, weights, stage, index, share.states).moment()};
  }
  if (known && problem.runtime.kind == Runtime::megatron) {
    const PassesOfStage& own =
        remembered.of(problem).megatron_passes(static_cast<std::size_t>(index));
    return {highest_moment(share.resident + own.resident, own.passes, share.optimizer_step),
            share.construction};
  }
  const StageProgram program = remembered.stage_program(problem, stage);
  StageMoments moments{fold_step(program, representative_passes(problem, index)),
                       share.construction};
  if (problem.runtime.kind == Runtime::deepspeed) {
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
  if (!has_step_program(problem)) {
    const ModelStates states = model_states(problem, remembered.weights(), stage);
    return estimated_moment(problem, remembered.weights(), stage, index, states).live;
  }
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
  if (problem.runtime.kind == Runtime::megatron) return megatron_stage_bytes(exchanged, run);
  const std::size_t index = known.firsts()[run];
  const Stage& stage = known.stages()[index];
  const auto rank = static_cast<std::int64_t>(index);
  // DeepSpeed's highest moment may be before the first step.
  const bool constructs = problem.runtime.kind == Runtime::deepspeed;
  const std::optional<Bytes> asked =
      constructs
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
  AllocatorConfig config = allocator_config(problem);
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
