// What do DeepSpeed's replicas send each other? Front door: deepspeed_calls.
#include "cost_model/runtime/deepspeed/plan.hpp"
#include "cost_model/runtime/replica_calls.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t engine_bucket = 500'000'000;

ReplicaRecipe recipe_of(const Problem& p) {
  const DeepspeedSettings& set = p.runtime.deepspeed;
  const ZeroStage zero = p.layout.zero;
  ReplicaRecipe recipe = zero_recipe(p);
  recipe.gradient_bytes = p.layout.cp > 1 ? 4 : recipe.parameter_bytes;
  recipe.reduce_bucket = zero == ZeroStage::none ? engine_bucket : set.reduce_bucket_size;
  if (zero == ZeroStage::optimizer && set.fp32_grad_accumulation) recipe.scatters = false;
  if (zero != ZeroStage::parameters) return recipe;
  recipe.gather_bucket = set.stage3_prefetch_bucket_size;
  if (set.quantized_weights) recipe.parameter_bytes = 1;
  // On one node it takes the usual reduce-scatter instead (stage3.py __avg_scatter_grads).
  const std::int64_t nodes = world_size(p.layout) / p.cluster.gpus_per_node;
  recipe.four_bits = set.quantized_gradients && nodes > 1;
  return recipe;
}

}  // namespace

std::vector<Call> deepspeed_calls(const Problem& problem,
                                  const WeightInventory& inventory,
                                  const Stage& stage) {
  std::vector<Call> calls = replica_calls(problem, inventory, stage, recipe_of(problem));
  add_tied_embedding(calls, problem, inventory, stage, state_recipe(problem).parameter_bytes);
  return calls;
}

}  // namespace zeroplan
