// How does FSDP2 store model states? Front door: fsdp2_state_recipe.
#include "cost_model/runtime/fsdp2/code.hpp"

#include "cost_model/states/state_recipe.hpp"

namespace zeroplan {

StateRecipe fsdp2_state_recipe(const Problem& p) {
  const std::int64_t bytes = p.runtime.fsdp2.parameter_bytes;
  // Gradients arrive in the reduction's format and are the optimizer's in the parameters'; there is
  // no master copy.
  return {.parameter_bytes = bytes,
          .gradient_bytes = bytes,
          .first_moment_bytes = bytes,
          .second_moment_bytes = bytes,
          .padding = Padding::first_dimension};
}

}  // namespace zeroplan
