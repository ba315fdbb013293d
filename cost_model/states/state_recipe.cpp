// How many bytes is a parameter, for whoever runs it? Front door: state_recipe.
#include "cost_model/states/state_recipe.hpp"

namespace zeroplan {
namespace {

struct Widths {
  std::int64_t compute;  // parameters as the matrix units read them
  std::int64_t master;   // 0 with fp32, where the parameters are their own master copy
};

// fp8 keeps bf16 parameters, of which 8-bit copies are made (see buffers.cpp), unless the runtime
// keeps matrices in 8 bits.
Widths widths(Precision precision) {
  return precision == Precision::fp32 ? Widths{4, 0} : Widths{2, 4};
}

StateRecipe megatron(const Problem& p) {
  const auto [compute, master] = widths(p.training.precision);
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
      recipe.step_gradient_bytes = 0;
      const bool bf16 = master > 0 && p.training.precision != Precision::fp16;
      const bool moved = p.layout.offload == Offload::optimizer;
      const bool has_upper_halves = !moved && !keeps_8_bit_matrices(p);
      if (bf16 && has_upper_halves && set.store_param_remainders) recipe.master_bytes = 2;
    }
  }
  if (zero >= ZeroStage::gradients) {  // Megatron-FSDP: gradients in the parameters' format
    recipe.gradient_bytes = compute;
    recipe.step_gradient_bytes = compute < 4 ? 4 : 0;
  }
  return recipe;
}

StateRecipe fsdp2(const Problem& p) {
  const std::int64_t bytes = p.runtime.fsdp2.parameter_bytes;
  // Gradients arrive in the reduction's format and are the optimizer's in the parameters'; there is
  // no master copy.
  return {.parameter_bytes = bytes,
          .gradient_bytes = bytes,
          .first_moment_bytes = bytes,
          .second_moment_bytes = bytes,
          .padding = Padding::first_dimension};
}

StateRecipe ddp() {  // fp32 parameters under autocast
  return {.parameter_bytes = 4, .gradient_bytes = 4};
}

StateRecipe deepspeed(const Problem& p) {
  const auto [compute, master] = widths(p.training.precision);
  StateRecipe recipe{.parameter_bytes = compute, .gradient_bytes = compute, .master_bytes = master};
  recipe.step_gradient_bytes = compute < 4 ? 4 : 0;
  const bool accumulate = p.runtime.deepspeed.fp32_grad_accumulation && compute < 4;
  switch (p.layout.zero) {
    case ZeroStage::none:
      break;
    case ZeroStage::optimizer:
      recipe.padding = Padding::flat_group;
      // BF16_Optimizer: the 16-bit gradients stay beside their fp32 accumulation.
      if (accumulate) recipe.gradient_bytes = compute + 4;
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

StateRecipe textbook(const Problem& p) {
  const auto [compute, master] = widths(p.training.precision);
  return {.parameter_bytes = compute, .gradient_bytes = compute, .master_bytes = master};
}

}  // namespace

bool keeps_8_bit_matrices(const Problem& problem) {
  return problem.runtime.kind == Runtime::megatron && problem.runtime.megatron.fp8_param_gather &&
         problem.training.precision == Precision::fp8;
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
  const bool narrow = half || problem.runtime.megatron.grad_reduce_in_bf16;
  return narrow ? widths(problem.training.precision).compute : 4;
}

StateRecipe state_recipe(const Problem& problem) {
  StateRecipe recipe;
  switch (problem.runtime.kind) {
    case Runtime::megatron:
      recipe = megatron(problem);
      break;
    case Runtime::fsdp2:
      recipe = fsdp2(problem);
      break;
    case Runtime::ddp:
      recipe = ddp();
      break;
    case Runtime::deepspeed:
      recipe = deepspeed(problem);
      break;
    case Runtime::zero_paper:
      recipe = textbook(problem);
      break;
    case Runtime::nanotron:
      // 16-bit parameters; gradients accumulated in an fp32 buffer, whole under ZeRO 1 too.
      recipe = {.parameter_bytes = 2, .gradient_bytes = 4, .master_bytes = 4};
      break;
    case Runtime::zeroplan:
      recipe = textbook(problem);
      recipe.padding = Padding::each_unit;
      break;
  }
  const ZeroStage zero = problem.layout.zero;
  // FSDP2 keeps every state sharded; its stage 2 only skips the second gather of the parameters.
  const bool all = problem.runtime.kind == Runtime::fsdp2;
  recipe.shard_optimizer = all || zero >= ZeroStage::optimizer;
  recipe.shard_gradients = all || zero >= ZeroStage::gradients;
  recipe.shard_parameters = all || zero >= ZeroStage::parameters;
  return recipe;
}

}  // namespace zeroplan
