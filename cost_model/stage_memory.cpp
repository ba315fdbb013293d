// How much does a pipeline stage need, and when? Front door: stage_memory.
#include "cost_model/stage_memory.hpp"

#include <algorithm>

#include "cost_model/memory/activations.hpp"
#include "cost_model/memory/buffers.hpp"
#include "cost_model/memory/overheads.hpp"
#include "cost_model/program/fold.hpp"
#include "cost_model/program/replay.hpp"

namespace zeroplan {
namespace {

// Reserved over allocated bytes, median of 344 ranks of 43 published B200 runs
// (MooreThreads/SimuMax docs/b200 @4dcaae5): 1.038. Stands in for a replay of the allocator.
constexpr std::int64_t fragmentation_permille = 38;

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

// The highest of backward pass, loss and optimizer step, each in closed form.
Moment estimated_moment(const Problem& problem,
                        const WeightInventory& inventory,
                        const Stage& stage,
                        std::int64_t index,
                        const ModelStates& states) {
  const SavedActivations saved = saved_activations(problem, stage, index);
  const Bytes buffers = communication_buffers(problem, inventory, stage);
  const auto moment = [](Phase phase, std::string_view tensor, Bytes activations, Bytes around,
                         Bytes temporaries) {
    Moment m{.phase = phase, .tensor = tensor};
    m.live[Category::activations] = activations;
    m.live[Category::communication_buffers] = around;
    m.live[Category::temporaries] = temporaries;
    return m;
  };
  std::vector<Moment> moments{
      moment(Phase::backward, "saved activations", saved.all + saved.rebuilt, buffers,
             widest_backward(problem, stage)),
      moment(Phase::optimizer_step, "widened gradients", Bytes{}, Bytes{},
             problem.runtime.kind == Runtime::zero_paper ? Bytes{} : states.step_gradients)};
  if (stage.head && problem.model.layers > 0) {
    const LossMemory loss = loss_memory(problem);
    moments.push_back(
        moment(Phase::loss, "logits", saved.all + loss.saved, buffers, loss.peak - loss.saved));
  }
  Moment highest = *std::max_element(
      moments.begin(), moments.end(),
      [](const Moment& a, const Moment& b) { return a.live.allocated() < b.live.allocated(); });
  highest.live[Category::parameters] = states.parameters;
  highest.live[Category::gradients] = states.gradients;
  highest.live[Category::master_parameters] = states.master_parameters;
  highest.live[Category::optimizer_states] = states.optimizer_states;
  highest.live[Category::workspace] = workspace(problem, inventory, stage);
  return highest;
}

Moment highest_moment(const Problem& problem,
                      const Remembered& remembered,
                      const Stage& stage,
                      std::int64_t index,
                      const ModelStates& states) {
  if (!has_step_program(problem)) {
    return estimated_moment(problem, remembered.weights(), stage, index, states);
  }
  return fold_step(remembered.stage_program(problem, stage), representative_passes(problem, index));
}

}  // namespace

StageMemory stage_memory(const Problem& problem,
                         const Remembered& remembered,
                         const Stage& stage,
                         std::int64_t index) {
  const ModelStates states = model_states(problem, remembered.weights(), stage);
  const Moment moment = highest_moment(problem, remembered, stage, index, states);
  StageMemory result{.stage = index,
                     .layers = layer_count(stage),
                     .phase = moment.phase,
                     .tensor = moment.tensor,
                     .memory = moment.live,
                     .states = states};
  MemoryBreakdown& m = result.memory;
  if (problem.runtime.kind != Runtime::zero_paper) {
    m[Category::fragmentation] = Bytes{m.allocated().count() / 1000 * fragmentation_permille};
  }
  m[Category::communicators] = communicator_bytes(problem);
  m[Category::context] = context_bytes(problem);
  return result;
}

void play_allocator(const Problem& problem,
                    const Remembered& remembered,
                    const Stage& stage,
                    StageMemory& memory) {
  const StageProgram program = remembered.stage_program(problem, stage);
  const Startup startup = remembered.startup(problem, stage, program);
  const std::vector<Pass> order = representative_passes(problem, memory.stage);
  AllocatorConfig config = allocator_config(problem);
  Replay played = replay(program, startup, order, config);
  // A full device makes the allocator return what it caches, and that may be enough.
  config.capacity = problem.cluster.gpu.memory - memory.memory[Category::communicators] -
                    memory.memory[Category::context];
  if (played.peak_reserved > config.capacity && memory.memory.allocated() <= config.capacity) {
    const Replay squeezed = replay(program, startup, order, config);
    if (!squeezed.out_of_memory) played = squeezed;
  }
  const Bytes asked = memory.memory.allocated();
  memory.memory[Category::fragmentation] = std::max(Bytes{}, played.peak_reserved - asked);
  memory.unsplit_blocks = std::max(Bytes{}, played.peak_allocated - asked);
}

}  // namespace zeroplan
