// How long does the optimizer take? Front door: optimizer_seconds.
#include "cost_model/pipeline/optimizer_time.hpp"

#include "cost_model/kernel/memory_bound.hpp"
#include "cost_model/pipeline/host_update.hpp"

namespace zeroplan {

double optimizer_seconds(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage,
                         const StageElements& elements) {
  const UpdateHabits habits = code_of(problem).update(problem, inventory, stage);
  const StateRecipe recipe = state_recipe(problem);
  const auto [updated, hidden] = updated_elements(elements, recipe);
  if (habits.on_host) return host_update_seconds(problem, updated, hidden);
  const bool widens = recipe.step_gradient_bytes > 0;
  const std::int64_t gradient = widens ? recipe.step_gradient_bytes : recipe.gradient_bytes;
  const bool own_master = recipe.master_bytes > 0;
  const std::int64_t widened = widens ? recipe.gradient_bytes + gradient : 0;
  const std::int64_t clip = habits.clip_passes * gradient;
  const std::int64_t parameters = (own_master ? 1 : 2) * recipe.parameter_bytes +
                                  (habits.rereads_master ? recipe.master_bytes : 0);
  const Bytes states = rewritten_states(problem.training.optimizer, recipe, updated, hidden);
  const std::int64_t zeroed = recipe.shard_gradients ? elements.shard() : elements.full();
  const std::int64_t clipped = habits.clips_all ? elements.full() : updated;
  const Bytes moved = states + Bytes{updated * (widened + gradient + parameters) + clipped * clip +
                                     zeroed * recipe.gradient_bytes};
  return habits.host_seconds + memory_bound_seconds(moved, Access::streaming, problem.cluster.gpu);
}

UpdateHabits updates_plainly(const Problem&, const WeightInventory&, const Stage&) {
  return {};
}

}  // namespace zeroplan
