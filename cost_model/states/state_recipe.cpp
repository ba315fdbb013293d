// How many bytes is a parameter, for whoever runs it? Front door: state_recipe.
#include "cost_model/states/state_recipe.hpp"

namespace zeroplan {

StateWidths state_widths(Precision precision) {
  return precision == Precision::fp32 ? StateWidths{4, 0} : StateWidths{2, 4};
}

StateRecipe textbook_recipe(const Problem& p) {
  const auto [compute, master] = state_widths(p.training.precision);
  return {.parameter_bytes = compute, .gradient_bytes = compute, .master_bytes = master};
}

bool keeps_8_bit_matrices(const Problem& problem) {
  return problem.runtime.megatron.fp8_param_gather && problem.training.precision == Precision::fp8;
}

std::int64_t copies_of_matrix(const Problem& problem) {
  const std::int64_t capability = problem.cluster.gpu.compute_capability;
  const bool either_orientation = (capability >= 100 && capability < 120) || capability >= 130;
  const Fp8Recipe recipe = problem.runtime.megatron.fp8_recipe;
  const bool one_scale = problem.training.precision == Precision::fp8 &&
                         (recipe == Fp8Recipe::delayed || recipe == Fp8Recipe::tensorwise);
  return one_scale && either_orientation ? 1 : 2;
}

Bytes quantized_bytes(const Problem& problem, std::int64_t elements) {
  if (problem.training.precision == Precision::nvfp4) {
    return Bytes{ceil_div(elements, 2) + ceil_div(elements, 16)};
  }
  const bool scaled = problem.runtime.megatron.fp8_recipe == Fp8Recipe::mxfp8;
  return Bytes{elements + (scaled ? ceil_div(elements, 32) : 0)};
}

std::int64_t main_gradient_bytes(const Problem& problem) {
  const bool half = problem.training.precision == Precision::fp16;
  const MegatronSettings& set = problem.runtime.megatron;
  // Megatron-FSDP keeps them as the parameters are (--megatron-fsdp-main-grads-dtype auto).
  constexpr std::int64_t first_as_parameters = 17;
  const bool as_parameters =
      problem.layout.zero >= ZeroStage::gradients && set.megatron_core >= first_as_parameters;
  const bool narrow = half || as_parameters || set.grad_reduce_in_bf16;
  return narrow ? state_widths(problem.training.precision).compute : 4;
}

StateRecipe state_recipe(const Problem& problem) {
  const RuntimeCode& code = code_of(problem);
  StateRecipe recipe = code.states(problem);
  const ZeroStage zero = problem.layout.zero;
  const bool all = *code.divides_states == DividesStates::always;
  recipe.shard_optimizer = all || zero >= ZeroStage::optimizer;
  recipe.shard_gradients = all || zero >= ZeroStage::gradients;
  recipe.shard_parameters = all || zero >= ZeroStage::parameters;
  return recipe;
}

}  // namespace zeroplan
