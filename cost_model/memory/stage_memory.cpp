// How much does a pipeline stage need, and when? Front door: stage_memory.
#include "cost_model/memory/stage_memory.hpp"

#include <algorithm>

#include "cost_model/memory/activations.hpp"
#include "cost_model/memory/buffers.hpp"
#include "cost_model/memory/overheads.hpp"

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

}  // namespace

StageMemory stage_memory(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage,
                         std::int64_t index) {
  const ModelStates states = model_states(problem, inventory, stage);
  const StageElements counts =
      stage_elements(problem, inventory, stage, state_recipe(problem).padding);
  const SavedActivations saved = saved_activations(problem, stage, index);
  const Bytes buffers = communication_buffers(problem, inventory, stage);

  struct Moment {
    Phase phase;
    std::string_view tensor;
    Bytes activations, buffers, temporaries;
    Bytes sum() const { return activations + buffers + temporaries; }
  };
  const Moment backward{Phase::backward, "saved activations", saved.all + saved.rebuilt, buffers,
                        widest_backward(problem, stage)};
  const Moment step{Phase::optimizer_step, "widened gradients", Bytes{}, Bytes{},
                    step_temporaries(problem, counts, states)};
  Moment highest = step.sum() > backward.sum() ? step : backward;
  if (stage.head && problem.model.layers > 0) {
    const LossMemory loss = loss_memory(problem);
    const Moment at_loss{Phase::loss, "logits", saved.all + loss.saved, buffers,
                         loss.peak - loss.saved};
    if (at_loss.sum() > highest.sum()) highest = at_loss;
  }

  StageMemory result{.stage = index,
                     .layers = layer_count(stage),
                     .phase = highest.phase,
                     .tensor = highest.tensor,
                     .states = states};
  MemoryBreakdown& m = result.memory;
  m[Category::parameters] = states.parameters;
  m[Category::gradients] = states.gradients;
  m[Category::master_parameters] = states.master_parameters;
  m[Category::optimizer_states] = states.optimizer_states;
  m[Category::activations] = highest.activations;
  m[Category::communication_buffers] = highest.buffers;
  m[Category::temporaries] = highest.temporaries;
  m[Category::workspace] = workspace(problem, inventory, stage);
  if (problem.runtime.kind != Runtime::zero_paper) {
    m[Category::fragmentation] = Bytes{m.allocated().count() / 1000 * fragmentation_permille};
  }
  m[Category::communicators] = communicator_bytes(problem);
  m[Category::context] = context_bytes(problem);
  return result;
}

}  // namespace zeroplan
