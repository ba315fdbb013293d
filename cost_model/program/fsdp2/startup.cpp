// Which single tensors make up what an FSDP2 rank holds? Front door: fsdp2_startup.
#include "cost_model/program/fsdp2/recipe.hpp"
#include "cost_model/program/fsdp2/stage.hpp"

namespace zeroplan {

Startup fsdp2_startup(const Problem& problem,
                      const WeightInventory& inventory,
                      const Stage& stage,
                      const StageProgram& program) {
  const StateRecipe recipe = state_recipe(problem);
  const ShardWidths widths = shard_widths(problem);
  const bool fused = !fsdp2_recipe(problem).foreach_optimizer;
  const bool moved = problem.layout.offload == Offload::parameters;
  Startup startup;
  BlockWriter w;
  const auto moment = [&](std::string_view name, std::int64_t bytes) {
    if (bytes > 0) {
      startup.moments.push_back(
          {name, Bytes{round_up(bytes, allocation_unit)}, Category::optimizer_states});
    }
  };
  const auto add = [&](const std::vector<Weight>& weights) {
    for (const Weight& weight : weights) {
      const LocalWeight local = local_weight(weight, problem);
      const std::int64_t ranks = weight.expert ? widths.expert : widths.dense;
      const std::int64_t shard = first_dimension_shard(problem, local, ranks);
      w.allocate(weight.name, Bytes{recipe.parameter_bytes * shard}, Category::parameters);
      // PyTorch makes the moments by a step with gradients of zero
      // (torch/distributed/checkpoint/state_dict.py _init_optim_state).
      const Bytes gradient{round_up(recipe.parameter_bytes * shard, allocation_unit)};
      startup.loading.push_back({"zero gradients", gradient, Category::gradients});
      if (fused) moment("step count", 4);
      moment(weight.name, recipe.first_moment_bytes * shard);
      moment(weight.name, recipe.second_moment_bytes * shard);
    }
  };
  if (!moved) visit_weights(problem, inventory, stage, add);
  for (const TensorSpec& spec : program.resident) {
    if (spec.category != Category::parameters && spec.category != Category::optimizer_states) {
      w.allocate(spec.name, spec.bytes, spec.category);
    }
  }
  startup.construction = w.finish();
  return startup;
}

}  // namespace zeroplan
