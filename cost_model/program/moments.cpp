// Which tensors does the first optimizer step leave behind? Front door: add_moments.
#include "cost_model/program/moments.hpp"

namespace zeroplan {

void add_moments(Startup& startup,
                 const Problem& problem,
                 std::string_view name,
                 std::int64_t count,
                 bool hidden_matrix) {
  const StateRecipe recipe = state_recipe(problem);
  for (const Bytes size :
       moment_tensors(problem.training.optimizer, recipe, count, hidden_matrix)) {
    startup.moments.push_back(
        {name, Bytes{round_up(size.count(), allocation_unit)}, Category::optimizer_states});
  }
}

}  // namespace zeroplan
