// What do DeepSpeed's replicas send each other? Front door: deepspeed_calls.
#include <cmath>

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
  // On one node quantized gradients take the usual reduce-scatter (stage3.py __avg_scatter_grads).
  const std::int64_t nodes = world_size(p.layout) / p.cluster.gpus_per_node;
  recipe.four_bits = set.quantized_gradients && nodes > 1;
  return recipe;
}

// Lets the gathers of `calls` carry what the coordinator gathers, which is not all that a pass
// needs: parameters stay between passes where they may. Small ones stay for good, so each is
// gathered by itself once it is updated (stage3.py step, persistent_parameters[0].all_gather).
void gather_as_coordinated(std::vector<Call>& calls,
                           const LiveParameters& live,
                           std::int64_t elements) {
  std::vector<Call> small;
  for (Call& call : calls) {
    if (call.collective != Collective::all_gather || call.during == During::step) continue;
    const double bytes =
        static_cast<double>(call.times * call.payload.count()) / static_cast<double>(elements);
    const auto carries = [&](Call& of, const LiveParameters::Gathered& gathered) {
      of.times = gathered.calls;
      const double all = bytes * static_cast<double>(gathered.elements);
      of.payload =
          Bytes{gathered.calls > 0 ? std::llround(all / static_cast<double>(gathered.calls)) : 0};
    };
    if (call.during == During::forward) {
      carries(small.emplace_back(of_step(call)), live.updated);
      carries(call, live.forward);
    } else {
      carries(call, live.backward);
    }
  }
  calls.insert(calls.end(), small.begin(), small.end());
  std::erase_if(calls, [](const Call& call) { return call.payload == Bytes{}; });
}

// Each rank's part of the norm's square (stage3.py scaled_global_norm, get_grad_norm_direct).
constexpr Bytes norm_payload{8};

}  // namespace

std::vector<Call> deepspeed_calls(const Problem& problem,
                                  const WeightInventory& inventory,
                                  const Stage& stage,
                                  const LiveParameters& live) {
  std::vector<Call> calls = replica_calls(problem, inventory, stage, recipe_of(problem));
  if (problem.layout.zero == ZeroStage::parameters) {
    const StageElements elements =
        stage_elements(problem, inventory, stage, state_recipe(problem).padding);
    gather_as_coordinated(calls, live, elements.full());
    calls.push_back({"dp", Collective::all_reduce, During::step, norm_payload});
  }
  add_tied_embedding(calls, problem, inventory, stage, state_recipe(problem).parameter_bytes);
  return calls;
}

}  // namespace zeroplan
