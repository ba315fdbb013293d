// What does a rank of the ZeRO paper hold? Front door: paper_stage.
#include "cost_model/runtime/paper/stage.hpp"

#include "cost_model/program/fold.hpp"
#include "cost_model/program/layer_shape.hpp"
#include "cost_model/runtime/pytorch_layers/chain.hpp"

namespace zeroplan {
namespace {

// 12 elements a token and feature, of all tokens: sequence parallelism came later.
Bytes layer_activations(const LayerShape& s) {
  constexpr std::int64_t elements = 12;
  return s.features(elements * ceil_div(s.token.hidden, s.problem.layout.tp));
}

Block paper_layer(const LayerShape& s) {
  BlockWriter w;
  const bool checkpoints = s.problem.layout.recompute == Recompute::full;
  const Bytes all = layer_activations(s);
  const Tensor kept =
      checkpoints ? w.save("layer input", s.residual()) : w.save("saved activations", all);
  w.begin_backward();
  const Tensor again = w.save("recomputed activations", checkpoints ? all : Bytes{});
  w.free_with_weights(again);
  w.free_with_weights(kept);
  return w.finish();
}

}  // namespace

StageProgram paper_stage(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage) {
  StageProgram program;
  const auto layer = folded(paper_layer(layer_shape(problem)));
  for (const LayerRange& range : stage.chunks) {
    ChunkProgram& chunk = program.chunks.emplace_back();
    const std::int64_t layers = range.last - range.first;
    // A size alone has no layers: nothing moves.
    layers > 0 ? append(chunk.runs, layer, layers)
               : append(chunk.runs, folded(BlockWriter().finish()));
  }
  const ModelStates states = model_states(problem, inventory, stage);
  add_resident(program, "parameters", states.parameters, Category::parameters);
  add_resident(program, "gradients", states.gradients, Category::gradients);
  add_resident(program, "master parameters", states.master_parameters, Category::master_parameters);
  add_resident(program, "optimizer states", states.optimizer_states, Category::optimizer_states);
  return program;
}

}  // namespace zeroplan
