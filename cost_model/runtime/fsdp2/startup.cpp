// Which single tensors make up what an FSDP2 rank holds? Front door: fsdp2_startup.
#include "cost_model/program/moments.hpp"
#include "cost_model/runtime/fsdp2/stage.hpp"
#include "cost_model/runtime/fsdp2/unit.hpp"
#include "cost_model/states/fsdp2_wrapping.hpp"

namespace zeroplan {

Startup fsdp2_startup(const Problem& problem,
                      const WeightInventory& inventory,
                      const Stage& stage,
                      const StageProgram& program) {
  const StateRecipe recipe = state_recipe(problem);
  const ShardWidths widths = shard_widths(problem);
  const Fsdp2Recipe code = fsdp2_recipe(problem);
  // The fused Adam of PyTorch counts the steps of each parameter on the device.
  const bool counts_steps =
      problem.training.optimizer == OptimizerKind::adam && code.optimizer == OptimizerCode::fused;
  const bool moved = problem.layout.offload == Offload::parameters;
  Startup startup;
  BlockWriter w;
  const auto add = [&](const std::vector<Weight>& weights) {
    const bool hidden = of_hidden_layer(inventory, weights);
    for (const Weight& weight : weights) {
      const LocalWeight local = local_weight(weight, problem);
      const std::int64_t ranks = weight.expert ? widths.expert : widths.dense;
      const std::int64_t shard = first_dimension_shard(problem, local, ranks);
      w.allocate(weight.name, Bytes{recipe.parameter_bytes * shard}, Category::parameters);
      // PyTorch makes the moments by a step with gradients of zero
      // (torch/distributed/checkpoint/state_dict.py _init_optim_state).
      const Bytes gradient{round_up(recipe.parameter_bytes * shard, allocation_unit)};
      startup.loading.push_back({"zero gradients", gradient, Category::gradients});
      // The first backward pass makes them.
      if (code.keeps_gradients) {
        startup.moments.push_back({"gradient", gradient, Category::gradients});
      }
      if (counts_steps) {
        startup.moments.push_back(
            {"step count", Bytes{allocation_unit}, Category::optimizer_states});
      }
      add_moments(startup, problem, weight.name, shard, hidden && weight.columns > 1);
    }
  };
  if (!moved) visit_weights(problem, inventory, stage, add);
  if (!moved && code.keeps_gradients && unties_ends(problem)) {
    const Bytes second = fsdp2_unit(problem, output_weights(inventory), false).gradient;
    startup.moments.push_back({"gradient", second, Category::gradients});
  }
  for (const TensorSpec& spec : program.resident) {
    using enum Category;
    const bool of_states = spec.category == parameters || spec.category == gradients ||
                           spec.category == optimizer_states;
    if (!of_states) w.allocate(spec.name, spec.bytes, spec.category);
  }
  startup.construction = w.finish();
  return startup;
}

}  // namespace zeroplan
