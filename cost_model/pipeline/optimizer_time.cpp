// How long does the optimizer take? Front door: optimizer_seconds.
#include "cost_model/pipeline/optimizer_time.hpp"

#include <set>
#include <string_view>

#include "cost_model/kernel/memory_bound.hpp"
#include "cost_model/kernel/time_constants.hpp"
#include "cost_model/pipeline/host_update.hpp"
#include "cost_model/runtime/deepspeed/plan.hpp"

namespace zeroplan {

namespace {

// Parameters of a list whose projections are fused.
std::int64_t tensors(const std::vector<Weight>& weights) {
  std::set<std::string_view> modules;
  for (const Weight& w : weights) modules.insert(w.module);
  return std::ssize(modules);
}

// Parameters of the stage, as nanotron holds them.
std::int64_t tensors(const Problem& p, const WeightInventory& inventory, const Stage& stage) {
  std::int64_t count = stage.embedding ? tensors(inventory.embedding) : 0;
  if (stage.head) count += tensors(inventory.head);
  for (const LayerKind kind : {LayerKind::dense, LayerKind::moe}) {
    count += layer_count(p.model, stage, kind) * tensors(inventory.layer(kind));
  }
  return count;
}

// nanotron clips, updates and narrows its parameters one by one in Python. Under ZeRO it gathers
// lists of the slices of every parameter, one a rank, which PyTorch copies one by one
// (huggingface/nanotron src/nanotron/optim/clip_grads.py, gradient_accumulator.py step, zero.py
// _all_gather_params @67c5ebb6).
double host_seconds(const Problem& p, const WeightInventory& inventory, const Stage& stage) {
  if (p.runtime.kind != Runtime::nanotron) return 0;
  const HostConstants& host = time_constants(p.cluster.gpu).host;
  const bool gathers = p.layout.zero != ZeroStage::none && p.layout.dp > 1;
  const auto slices = static_cast<double>(gathers ? p.layout.dp : 0);
  return static_cast<double>(tensors(p, inventory, stage)) *
         (host.nanotron_update + slices * host.nanotron_slice);
}

}  // namespace

double optimizer_seconds(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage,
                         const StageElements& elements) {
  if (problem.runtime.kind == Runtime::deepspeed && steps_on_host(problem)) {
    return host_update_seconds(problem, elements.shard(), elements.hidden_shard());
  }
  const StateRecipe recipe = state_recipe(problem);
  const bool widens = recipe.step_gradient_bytes > 0;
  const std::int64_t gradient = widens ? recipe.step_gradient_bytes : recipe.gradient_bytes;
  const bool own_master = recipe.master_bytes > 0;
  const std::int64_t widened = widens ? recipe.gradient_bytes + gradient : 0;
  // nanotron scales every gradient beside taking its norm, also those that other ranks update, and
  // reads the master copy once more to narrow it.
  const bool nanotron = problem.runtime.kind == Runtime::nanotron;
  const std::int64_t clip = nanotron ? 3 * gradient : gradient;
  const std::int64_t parameters =
      (own_master ? 1 : 2) * recipe.parameter_bytes + (nanotron ? recipe.master_bytes : 0);
  const std::int64_t updated = recipe.shard_optimizer ? elements.shard() : elements.full();
  const Bytes states =
      rewritten_states(problem.training.optimizer, recipe, updated,
                       recipe.shard_optimizer ? elements.hidden_shard() : elements.hidden_full());
  const std::int64_t zeroed = recipe.shard_gradients ? elements.shard() : elements.full();
  const std::int64_t clipped = nanotron ? elements.full() : updated;
  const Bytes moved = states + Bytes{updated * (widened + gradient + parameters) + clipped * clip +
                                     zeroed * recipe.gradient_bytes};
  return host_seconds(problem, inventory, stage) +
         memory_bound_seconds(moved, Access::streaming, problem.cluster.gpu);
}

}  // namespace zeroplan
