// What does a rank of the ZeRO paper hold and send? Front door: paper_stage.
#include "cost_model/runtime/paper/stage.hpp"

#include "cost_model/program/fold.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/paper/blocks.hpp"
#include "cost_model/runtime/pytorch_layers/chain.hpp"
#include "cost_model/runtime/replica_calls.hpp"

namespace zeroplan {
namespace {

std::vector<Call> calls_of_replicas(const Problem& problem,
                                    const WeightInventory& inventory,
                                    const Stage& stage) {
  return replica_calls(problem, inventory, stage, zero_recipe(problem));
}

// What a micro-batch gathers and reduces, before the first block.
Block exchange(const std::vector<Call>& calls) {
  BlockWriter w;
  write_calls(w, calls, During::forward);
  w.begin_backward();
  write_calls(w, calls, During::backward);
  return w.finish();
}

}  // namespace

StageProgram paper_stage(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage) {
  const LayerShape shape = layer_shape(problem);
  const std::vector<Call> calls = calls_of_replicas(problem, inventory, stage);
  StageProgram program;
  std::shared_ptr<const FoldedBlock> layers[2];  // by kind
  for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
    Runs& runs = program.chunks.emplace_back().runs;
    // A micro-batch crosses all chunks of a rank, but one of DualPipe's two. A size alone has no
    // layers: nothing moves.
    const bool enters = i == 0 || problem.layout.schedule == Schedule::dualpipe;
    append(runs, folded(exchange(enters ? calls : std::vector<Call>{})));
    if (begins_model(stage, i)) append(runs, folded(paper_embedding(shape)));
    for (std::int64_t l = stage.chunks[i].first; l < stage.chunks[i].last; ++l) {
      const LayerKind kind = kind_of(problem.model, l);
      auto& layer = layers[static_cast<std::size_t>(kind)];
      if (!layer) layer = folded(paper_layer(shape, kind));
      append(runs, layer);
    }
    if (ends_model(stage, i)) append(runs, folded(paper_head(shape)));
  }
  BlockWriter step;
  write_calls(step, calls, During::step);
  program.step = step.finish();
  const ModelStates states = model_states(problem, inventory, stage);
  add_resident(program, "parameters", states.parameters, Category::parameters);
  add_resident(program, "gradients", states.gradients, Category::gradients);
  add_resident(program, "master parameters", states.master_parameters, Category::master_parameters);
  add_resident(program, "optimizer states", states.optimizer_states, Category::optimizer_states);
  return program;
}

std::vector<Call> paper_update_calls(const Problem& problem,
                                     const WeightInventory& inventory,
                                     const Stage& stage) {
  return in_step(calls_of_replicas(problem, inventory, stage), micro_batches(problem));
}

Block paper_block(const Problem& problem,
                  const WeightInventory&,
                  BlockKind block,
                  LayerKind layer,
                  RepeatSet policy) {
  Problem p = problem;
  p.layout.recompute = policy == whole_layer ? Recompute::full : Recompute::none;
  const LayerShape shape = layer_shape(p);
  return block == BlockKind::embedding ? paper_embedding(shape)
         : block == BlockKind::layer   ? paper_layer(shape, layer)
                                       : paper_head(shape);
}

}  // namespace zeroplan
