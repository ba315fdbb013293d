// How does Megatron-Core store model states? Front door: megatron_state_recipe.
#include "cost_model/runtime/megatron/code.hpp"

#include "cost_model/states/state_recipe.hpp"

namespace zeroplan {

namespace {

// Moments that FusedAdam widens. Two of 16 bits, taken for bf16, its kernel reads as they are since
// TransformerEngine 459e7cf49.
std::int64_t widened_moments(const MegatronSettings& set) {
  constexpr std::int64_t reads_bf16 = 214;
  const bool both = set.exp_avg_bytes == 2 && set.exp_avg_sq_bytes == 2;
  if (both && set.transformer_engine_version >= reads_bf16) return 0;
  return (set.exp_avg_bytes < 4 ? 1 : 0) + (set.exp_avg_sq_bytes < 4 ? 1 : 0);
}

}  // namespace

bool widens_moments(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  return p.layout.zero == ZeroStage::optimizer && set.precision_aware() &&
         p.layout.offload != Offload::optimizer && widened_moments(set) > 0;
}

StateRecipe megatron_state_recipe(const Problem& p) {
  const auto [compute, master] = state_widths(p.training.precision);
  const MegatronSettings& set = p.runtime.megatron;
  StateRecipe recipe{.parameter_bytes = compute,
                     .gradient_bytes = main_gradient_bytes(p),
                     .master_bytes = master,
                     .first_moment_bytes = set.exp_avg_bytes,
                     .second_moment_bytes = set.exp_avg_sq_bytes};
  // Main gradients narrower than the master copy are widened for the step.
  if (recipe.gradient_bytes < 4) recipe.step_gradient_bytes = 4;
  const ZeroStage zero = p.layout.zero;
  if (zero >= ZeroStage::optimizer) {
    recipe.padding = Padding::aligned_buffer;
    if (set.precision_aware()) {
      // FusedAdam reads gradients as they are, and keeps the lower halves of bf16 parameters.
      recipe.step_gradient_bytes = widens_moments(p) ? 4 * widened_moments(set) : 0;
      const bool bf16 = master > 0 && p.training.precision != Precision::fp16;
      const bool moved = p.layout.offload == Offload::optimizer;
      const bool by_ddp = zero == ZeroStage::optimizer;  // Megatron-FSDP keeps whole ones
      const bool has_upper_halves = by_ddp && !moved && !keeps_8_bit_matrices(p);
      if (bf16 && has_upper_halves && set.store_param_remainders) recipe.master_bytes = 2;
    }
  }
  if (zero >= ZeroStage::gradients) {
    recipe.padding = Padding::divided_buckets;
    recipe.master_bytes = 4;  // beside parameters of fp32 too
    recipe.step_gradient_bytes = recipe.gradient_bytes < 4 && !set.precision_aware() ? 4 : 0;
  }
  return recipe;
}

}  // namespace zeroplan
