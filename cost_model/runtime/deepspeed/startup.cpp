// Which tensors does a DeepSpeed rank make, and in which order? Front door: deepspeed_startup.
#include "cost_model/runtime/deepspeed/startup.hpp"

#include "cost_model/runtime/deepspeed/plan.hpp"

namespace zeroplan {
namespace {

// Minor versions from which on the first step makes the moments.
constexpr std::int64_t lazy_zero = 13;
constexpr std::int64_t lazy_bf16 = 15;

bool made_at_start(const Problem& p, DeepspeedOptimizer optimizer) {
  switch (optimizer) {
    case DeepspeedOptimizer::fused:
      return true;
    case DeepspeedOptimizer::bf16:
      return p.runtime.deepspeed.version < lazy_bf16;
    default:
      return p.runtime.deepspeed.version < lazy_zero;
  }
}

// How often the weights are there, each by itself, when their flat buffer is made.
int copies_of_modules(DeepspeedOptimizer optimizer) {
  switch (optimizer) {
    case DeepspeedOptimizer::fused:
      return 2;
    case DeepspeedOptimizer::bf16:
      return 1;
    default:
      return 0;
  }
}

}  // namespace

Startup deepspeed_startup(const Problem& problem,
                          const WeightInventory& inventory,
                          const Stage& stage,
                          const StageProgram& program) {
  const DeepspeedOptimizer optimizer = deepspeed_optimizer(problem);
  const bool eager = made_at_start(problem, optimizer);
  const std::int64_t element = state_recipe(problem).parameter_bytes;
  // BF16_Optimizer steps with the gradients that it holds.
  const bool makes_gradients = optimizer != DeepspeedOptimizer::bf16;

  Startup startup;
  BlockWriter w;
  std::vector<Tensor> modules;
  for (int copy = 0; copy < copies_of_modules(optimizer); ++copy) {
    for (const std::int64_t elements : tensor_sizes(problem, inventory, stage)) {
      modules.push_back(
          w.allocate("module's weight", Bytes{element * elements}, Category::parameters));
    }
  }
  Bytes masters;
  for (const TensorSpec& spec : program.resident) {
    if (spec.category == Category::optimizer_states) {
      if (!eager) {
        startup.moments.push_back(spec);
        continue;
      }
      const Tensor gradients = w.temporary("zero gradients", makes_gradients ? masters : Bytes{});
      w.allocate(spec.name, spec.bytes, spec.category);
      w.free(gradients);
      continue;
    }
    w.allocate(spec.name, spec.bytes, spec.category);
    if (spec.category == Category::master_parameters) masters += spec.bytes;
    if (spec.category != Category::parameters) continue;
    for (const Tensor module : modules) w.free(module);
    modules.clear();
  }
  startup.construction = w.finish();
  return startup;
}

}  // namespace zeroplan
