// How does nanotron update? Front door: nanotron_update.
#include <set>
#include <string_view>

#include "cost_model/kernel/time_constants.hpp"
#include "cost_model/pipeline/optimizer_time.hpp"
#include "cost_model/runtime/nanotron/code.hpp"

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
  for (const LayerKind kind : all_layer_kinds) {
    count += layer_count(p.model, stage, kind) * tensors(inventory.layer(kind));
  }
  return count;
}

// Seconds of the host: nanotron clips, updates and narrows its parameters one by one in Python.
// Under ZeRO it gathers lists of the slices of every parameter, one a rank, which PyTorch copies
// one by one (huggingface/nanotron src/nanotron/optim/clip_grads.py, gradient_accumulator.py step,
// zero.py _all_gather_params @67c5ebb6).
double host_seconds(const Problem& p, const WeightInventory& inventory, const Stage& stage) {
  const HostConstants& host = time_constants(p.cluster.gpu).host;
  const bool gathers = p.layout.zero != ZeroStage::none && p.layout.dp > 1;
  const auto slices = static_cast<double>(gathers ? p.layout.dp : 0);
  return static_cast<double>(tensors(p, inventory, stage)) *
         (host.nanotron_update + slices * host.nanotron_slice);
}

}  // namespace

// nanotron scales every gradient beside taking its norm, also those that other ranks update, and
// reads the master copy once more to narrow it.
UpdateHabits nanotron_update(const Problem& problem,
                             const WeightInventory& inventory,
                             const Stage& stage) {
  return {.clip_passes = 3,
          .clips_all = true,
          .rereads_master = true,
          .host_seconds = host_seconds(problem, inventory, stage)};
}

}  // namespace zeroplan
