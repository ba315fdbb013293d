// What does a rank of DeepSpeed hold and run? Front door: deepspeed_stage.
#include "cost_model/runtime/deepspeed/stage.hpp"

#include <algorithm>
#include <optional>
#include <span>

#include "cost_model/runtime/deepspeed/block_writers.hpp"
#include "cost_model/runtime/deepspeed/step.hpp"
#include "cost_model/runtime/pytorch_layers/chain.hpp"

namespace zeroplan {
namespace {

EagerCode code_of_layers(const Problem& problem) {
  EagerCode code = huggingface_code(problem);
  code.style.exchanges_heads = true;
  if (problem.runtime.deepspeed.logits == Logits::kept) code.loss = LossCode::huggingface;
  return code;
}

// Blocks of layers are alike, so that of all reductions one stands in each from its layer on: that
// beside which most lives.
void choose_reductions(DeepspeedPlan& plan,
                       const std::vector<const LayerLevels*>& levels,
                       std::int64_t element) {
  std::span<const Reduction> others = plan.reductions;
  if (plan.owned_from == DeepspeedPlan::Owned::in_layers) {
    plan.first = others.front();
    others = others.subspan(1);
  }
  plan.highest = highest(others, levels, element);
  if (!plan.highest || plan.highest->live == 0) return;
  const Bytes live{element * plan.highest->live};
  plan.gone = std::max(Bytes{}, plan.live - live);
  plan.more = std::max(Bytes{}, live - plan.live);
}

// Blocks of layers are alike, so that of all that is gathered in their forward passes one amount
// stands in each up to its layer: that beside which most lives.
void choose_gathered(DeepspeedPlan& plan,
                     const std::vector<const LayerLevels*>& levels,
                     std::int64_t element) {
  Bytes left, top;
  for (std::size_t layer = 0; layer < plan.gathered.size(); ++layer) {
    const Bytes gathered{element * plan.gathered[layer]};
    if (left + gathered > top) {
      top = left + gathered;
      plan.ahead_to = static_cast<std::int64_t>(layer);
      plan.ahead_in_layers = std::max(Bytes{}, gathered - plan.live);
    }
    left += levels[layer]->left;
  }
}

// Chooses what stands in layers' blocks, by the levels of layers that reduce nothing, one of a
// kind.
template <class Write>
void choose(DeepspeedPlan& plan, const Problem& p, Checkpoint checkpoint, const Write& write) {
  if (plan.reductions.empty() && plan.gathered.empty()) return;
  ByKind<std::array<std::optional<LayerLevels>, 2>> kinds;  // by window
  std::vector<const LayerLevels*> levels;
  for (std::int64_t i = 0; i < p.model.layers; ++i) {
    const EagerLink link = layer_link(p.model, i, checkpoint);
    auto& of_kind = kinds[link.layer][link.windowed];
    if (!of_kind) of_kind = levels_of(write({.link = link, .sort = LayerSort{}.number()}));
    levels.push_back(&*of_kind);
  }
  choose_reductions(plan, levels, state_recipe(p).parameter_bytes);
  choose_gathered(plan, levels, state_recipe(p).parameter_bytes);
}

}  // namespace

StageProgram deepspeed_stage(const Problem& problem,
                             const WeightInventory& inventory,
                             const Stage& stage) {
  const EagerCode code = code_of_layers(problem);
  DeepspeedPlan plan = deepspeed_plan(problem, inventory, stage);
  const bool full = problem.layout.recompute == Recompute::full;
  const Checkpoint checkpoint = full ? Checkpoint::layer : Checkpoint::none;
  const auto write = [&](const EagerPlace& place) {
    return write_deepspeed_block(problem, inventory, code, plan, place);
  };
  choose(plan, problem, checkpoint, write);
  StageProgram program;
  program.chunks.push_back(eager_chain(problem, checkpoint, write, [&](std::int64_t layer) {
    return LayerSort::at(plan, layer).number();
  }));
  program.step = deepspeed_step(plan, program.chunks.front());
  add_deepspeed_states(program, plan, model_states(problem, inventory, stage));
  add_plain_buffers(program, problem, inventory, stage);
  return program;
}

Block deepspeed_block(const Problem& problem,
                      const WeightInventory& inventory,
                      BlockKind block,
                      LayerKind layer,
                      RepeatSet policy) {
  return eager_block(problem, inventory, code_of_layers(problem), block, layer, policy);
}

}  // namespace zeroplan
