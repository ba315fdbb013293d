// What does a rank of Megatron-Core exchange with its replicas, and when? Front door:
// megatron_update_calls.
#include <algorithm>
#include <cmath>
#include <optional>

#include "cost_model/runtime/megatron/fsdp_buckets.hpp"
#include "cost_model/runtime/megatron/stage.hpp"
#include "cost_model/runtime/replica_calls.hpp"

namespace zeroplan {
namespace {

// Megatron-FSDP wraps each model chunk by itself (training/training.py) and gathers ahead along its
// layers: the one that a pass of the chunk begins with is waited for, in either direction
// (core/distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py).
void gather_by_layers(std::vector<Call>& calls, const Stage& stage) {
  for (Call& call : calls) {
    if (call.collective == Collective::all_gather && call.during != During::step) {
      call.layers = layer_count(stage);
    }
  }
}

// What is in no layer stays gathered, so that it is gathered once a step, when its parameters are
// new, and the next step waits for it.
void gather_ends_once(std::vector<Call>& calls, Bytes ends) {
  if (ends == Bytes{}) return;
  std::optional<Call> once;
  for (Call& call : calls) {
    const bool gathers = call.collective == Collective::all_gather && call.group != "expert-dp";
    if (!gathers || call.during == During::step) continue;
    call.payload -= ends;
    once = call;
  }
  if (!once) return;
  once->during = During::step;
  once->payload = ends;
  calls.push_back(*once);
}

// Elements of the experts' weights that a rank holds of one layer.
std::int64_t elements_of_experts(const Problem& problem, const WeightInventory& inventory) {
  std::int64_t elements = 0;
  for (const LayerKind kind : all_layer_kinds) {
    if (!has_experts(kind) || !inventory.has(kind)) continue;
    for (const Weight& w : inventory.layer(kind)) {
      if (w.expert) elements += local_weight(w, problem).elements();
    }
    break;  // experts of all kinds are alike
  }
  return elements;
}

// Where gathers overlap, a module waits for the buckets of its weights one after the other, and
// each asks for the next when it has come (core/distributed/distributed_data_parallel.py
// _make_forward_pre_hook, param_and_grad_buffer.py finish_param_sync): of a layer's experts two
// travel beside computing, those that are asked for last before each of their products. Later
// stages, which have one bucket each, gather while the pipeline fills. Later chunks of this one
// have one bucket, too (training/training.py get_model), but are taken for the first: what travels
// for states is told by the layers of a stage alone.
void gather_experts_by_buckets(std::vector<Call>& calls,
                               const Problem& problem,
                               const WeightInventory& inventory,
                               const Stage& stage) {
  if (!problem.model.moe || !stage.embedding) return;
  const std::int64_t bucket = problem.runtime.megatron.bucket_elements(problem.layout);
  const std::int64_t all = elements_of_experts(problem, inventory);
  const std::int64_t ahead = std::min(all, 2 * bucket);
  const auto gathers = [](const Call& call) {
    return call.group == "expert-dp" && call.collective == Collective::all_gather &&
           call.during == During::step;
  };
  const auto found = std::ranges::find_if(calls, gathers);
  if (found == calls.end() || ahead == all) return;
  const double part = static_cast<double>(ahead) / static_cast<double>(all);
  Call waited = *found;
  found->payload = Bytes{std::llround(static_cast<double>(found->payload.count()) * part)};
  waited.payload -= found->payload;
  waited.beside = Beside::waited;
  calls.push_back(waited);
}

}  // namespace

std::vector<Call> megatron_update_calls(const Problem& problem,
                                        const WeightInventory& inventory,
                                        const Stage& stage) {
  ReplicaRecipe recipe = zero_recipe(problem);
  recipe.gradient_bytes = reduced_gradient_bytes(problem);
  std::vector<Call> calls = replica_calls(problem, inventory, stage, recipe);
  if (recipe.gathers_in_passes) {
    gather_ends_once(calls, fsdp_gathered_ends(problem, inventory, stage));
    gather_by_layers(calls, stage);
  }
  gather_experts_by_buckets(calls, problem, inventory, stage);
  add_tied_embedding(calls, problem, inventory, stage, recipe.gradient_bytes);
  add_replicated_weights(calls, problem, inventory, stage, recipe.gradient_bytes);
  return in_step(std::move(calls), micro_batches(problem));
}

}  // namespace zeroplan
