// How many bytes is a parameter, for whoever runs it? Front door: state_recipe.
#include "cost_model/states/state_recipe.hpp"

namespace zeroplan {
namespace {

// Whether the gradients' types are settings of Megatron-FSDP.
bool types_gradients(const Problem& problem) {
  constexpr std::int64_t first = 17;
  return problem.layout.zero >= ZeroStage::gradients &&
         problem.runtime.megatron.megatron_core >= first;
}

std::int64_t bytes_of(GradientType type, std::int64_t automatic) {
  return type == GradientType::automatic ? automatic : type == GradientType::fp32 ? 4 : 2;
}

}  // namespace

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
  const std::int64_t parameters = state_widths(problem.training.precision).compute;
  if (types_gradients(problem)) {
    return bytes_of(set.megatron_fsdp_main_grads_dtype, parameters);
  }
  return half || set.grad_reduce_in_bf16 ? parameters : 4;
}

std::int64_t reduced_gradient_bytes(const Problem& problem) {
  const std::int64_t main = main_gradient_bytes(problem);
  return types_gradients(problem)
             ? bytes_of(problem.runtime.megatron.megatron_fsdp_grad_comm_dtype, main)
             : main;
}

StateRecipe state_recipe(const Problem& problem) {
  const RuntimeCode& code = code_of(problem);
  StateRecipe recipe = code.states(problem);
  const ZeroStage zero = problem.layout.zero;
  const bool all = *code.divides_states == DividesStates::always;
  recipe.shard_optimizer = all || zero >= ZeroStage::optimizer;
  recipe.shard_gradients = all || zero >= ZeroStage::gradients;
  recipe.shard_parameters = all || zero >= ZeroStage::parameters;
  recipe.outer_ranks = outer_ranks(problem);
  return recipe;
}

}  // namespace zeroplan
