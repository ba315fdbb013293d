// How long does the optimizer take? Front door: optimizer_seconds.
#include "cost_model/step/optimizer_time.hpp"

#include "cost_model/time/memory_bound.hpp"
#include "cost_model/time/time_constants.hpp"

namespace zeroplan {

double optimizer_seconds(const Problem& problem, const StageElements& elements) {
  const StateRecipe recipe = state_recipe(problem);
  const bool widens = recipe.step_gradient_bytes > 0;
  const std::int64_t gradient = widens ? recipe.step_gradient_bytes : recipe.gradient_bytes;
  const bool own_master = recipe.master_bytes > 0;
  const std::int64_t widened = widens ? recipe.gradient_bytes + gradient : 0;
  const std::int64_t norm = gradient;
  const std::int64_t states =
      2 * (recipe.first_moment_bytes + recipe.second_moment_bytes + recipe.master_bytes);
  const std::int64_t parameters = (own_master ? 1 : 2) * recipe.parameter_bytes;
  const std::int64_t updated = recipe.shard_optimizer ? elements.shard() : elements.full();
  const std::int64_t zeroed = recipe.shard_gradients ? elements.shard() : elements.full();
  const Bytes moved{updated * (widened + norm + gradient + states + parameters) +
                    zeroed * recipe.gradient_bytes};
  const HostConstants& constants = time_constants(problem.cluster.gpu).host;
  const double host = problem.runtime.kind == Runtime::nanotron ? constants.nanotron_update : 0;
  return host + memory_bound_seconds(moved, Access::streaming, problem.cluster.gpu);
}

}  // namespace zeroplan
