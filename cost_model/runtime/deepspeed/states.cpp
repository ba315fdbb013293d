// How does DeepSpeed store model states? Front door: deepspeed_state_recipe.
#include "cost_model/runtime/deepspeed/code.hpp"

#include "cost_model/runtime/deepspeed/plan.hpp"
#include "cost_model/states/state_recipe.hpp"

namespace zeroplan {

StateRecipe deepspeed_state_recipe(const Problem& p) {
  const auto [compute, master] = state_widths(p.training.precision);
  StateRecipe recipe{.parameter_bytes = compute, .gradient_bytes = compute, .master_bytes = master};
  recipe.step_gradient_bytes = compute < 4 ? 4 : 0;
  const bool accumulate =
      p.runtime.deepspeed.fp32_grad_accumulation && compute < 4 && !leaves_widening_out(p);
  switch (p.layout.zero) {
    case ZeroStage::none:
      break;
    case ZeroStage::optimizer:
      recipe.padding = Padding::flat_group;
      // BF16_Optimizer: the 16-bit gradients stay beside their fp32 accumulation.
      if (accumulate) recipe.gradient_bytes = widens_gradients(p) ? 4 : compute + 4;
      break;
    case ZeroStage::gradients:
      recipe.padding = Padding::flat_group;
      break;
    case ZeroStage::parameters:
      recipe.padding = Padding::each_tensor;
      if (accumulate) recipe.gradient_bytes = 4;
      break;
  }
  if (accumulate) recipe.step_gradient_bytes = 0;
  return recipe;
}

}  // namespace zeroplan
