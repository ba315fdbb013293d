// What does Megatron-Core allocate around the layers? Front doors: megatron_held_buffers,
// megatron_workspaces.
#include "cost_model/states/buffers.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <utility>

#include "cost_model/runtime/megatron/code.hpp"
#include "cost_model/runtime/megatron/fsdp_buckets.hpp"
#include "cost_model/runtime/megatron/own_linears.hpp"

namespace zeroplan {
namespace {

// A list of few elements, without a heap.
template <class T>
using Few = boost::container::small_vector<T, 12>;

// Placeholder gradients: one tensor a distinct weight shape, of the weights' type; fused
// projections are one weight.
Bytes placeholder_gradients(const Problem& p,
                            const WeightInventory& inventory,
                            const Stage& stage) {
  const MegatronSettings& set = p.runtime.megatron;
  const bool in_layers = handed_by_linears(set) == HandedGradient::shared;
  const bool of_head = handed_by_own_linears(set) == HandedGradient::shared;
  Few<std::pair<std::int64_t, std::int64_t>> shapes;
  const auto add_shape = [&](const LocalWeight& weight) {
    const std::pair shape(weight.rows, weight.columns);
    if (std::ranges::find(shapes, shape) == shapes.end()) shapes.push_back(shape);
  };
  const auto collect = [&](const std::vector<Weight>& weights) {
    Few<std::pair<const Weight*, LocalWeight>> fused;
    for (const Weight& w : weights) {
      const bool too_old = w.expert && !set.local_layers() &&
                           set.transformer_engine_version < 210;  // grouped linears
      if (w.columns == 1 || w.module == "embedding" || w.module == "router" || too_old) continue;
      const LocalWeight local = local_weight(w, p);
      const auto same = std::ranges::find_if(fused, [&](const auto& known) {
        return known.first->expert == w.expert && known.first->module == w.module;
      });
      if (same == fused.end()) {
        fused.emplace_back(&w, local);
      } else {
        same->second.rows += local.rows;
      }
    }
    for (const auto& [first, weight] : fused) add_shape(weight);
  };
  for (const LayerKind kind : all_layer_kinds) {
    if (in_layers && layer_count(p.model, stage, kind) > 0) collect(inventory.layer(kind));
  }
  if (in_layers && stage.head && trained_mtp_modules(p) > 0) collect(inventory.mtp);
  if (of_head && stage.head) {
    collect(inventory.head);
    for (const Weight& w : inventory.tied_head) add_shape(local_weight(w, p));
  }
  const std::int64_t element = p.training.precision == Precision::fp32 ? 4 : 2;
  Bytes total;
  for (const auto& [rows, columns] : shapes) total += Bytes{element * rows * columns};
  return total;
}

// The quantized copies of the linear weights, with their transposes. Each module makes them in the
// first micro-batch and keeps them from then on, whole: TransformerEngine @d0067d0da leaves them
// out under PyTorch's FSDP2 alone (pytorch/module/linear.py cache_name, is_fsdp2), and
// Megatron-FSDP, which frees the 16-bit weights that they are made of, does not reach them
// (Megatron-LM @d98e8a64dd core/extensions/transformer_engine.py passes is_first_microbatch).
// Weights that are 8-bit themselves need transposes alone, which Megatron-FSDP drops with the unit
// where it shards parameters (core/distributed/fsdp/src/megatron_fsdp/megatron_fsdp.py
// release_params_fp8_transpose_cache), and, beside what is counted as states, their scales.
Bytes fp8_weight_copies(const Problem& p, const WeightInventory& inventory, const Stage& stage) {
  std::int64_t sum = 0;
  std::int64_t widest = 0;
  for (const LayerKind kind : all_layer_kinds) {
    std::int64_t layer = 0;
    for (const Weight& w : inventory.layer(kind)) {
      if (w.columns > 1 && !w.wide && w.module != "router") layer += local_weight(w, p).elements();
    }
    const std::int64_t count = layer_count(p.model, stage, kind);
    sum += layer * count;
    if (count > 0) widest = std::max(widest, layer);
  }
  // The output layer is built outside of what makes matrices of 8 bits.
  std::int64_t head = 0;
  if (stage.head && p.runtime.megatron.fp8_output_proj) {
    for (const Weight& w : inventory.head) {
      if (w.columns > 1) head += local_weight(w, p).elements();
    }
  }
  if (!keeps_8_bit_matrices(p)) return copies_of_matrix(p) * quantized_bytes(p, sum + head);
  const bool dropped = p.layout.zero == ZeroStage::parameters;
  const Bytes scales = is_megatron_fsdp(p) ? Bytes{} : quantized_bytes(p, sum) - Bytes{sum};
  return scales + (copies_of_matrix(p) - 1) * quantized_bytes(p, dropped ? widest : sum) +
         copies_of_matrix(p) * quantized_bytes(p, head);
}

// The workspace of cuBLAS: as CUBLAS_WORKSPACE_CONFIG says, where it does.
Workspace cublas_of(const Problem& p) {
  const std::int64_t asked = p.runtime.megatron.cublas_workspace_kib;
  return asked > 0 ? Workspace{"cuBLAS", 2 * Bytes{asked * 1024}} : cublas_workspace(p);
}

// Transformer Engine's own workspaces (pytorch/cpp_extensions/gemm.py): four more for grouped
// GEMMs, three times as large with user buffers, 1 KiB more since 2.8.
Bytes engine_workspaces(const Problem& p, bool grouped) {
  const MegatronSettings& set = p.runtime.megatron;
  constexpr std::int64_t with_counters = 208;
  Bytes one = 4_MiB;
  if (p.cluster.gpu.compute_capability >= 90) {
    one = 32_MiB + Bytes{set.transformer_engine_version >= with_counters ? 1024 : 0};
  }
  return (1 + (grouped ? 4 : 0) + (set.tp_comm_overlap ? 3 : 0)) * one;
}

}  // namespace

Bytes megatron_held_buffers(const Problem& p,
                            const WeightInventory& inventory,
                            const Stage& stage) {
  // Collectives run in place on the buffers of parameters and gradients, but for Megatron-FSDP's.
  return is_megatron_fsdp(p) ? fsdp_gathered_ends(p, inventory, stage) : Bytes{};
}

std::vector<Workspace> megatron_workspaces(const Problem& problem,
                                           const WeightInventory& inventory,
                                           const Stage& stage) {
  const Workspace cublas = cublas_of(problem);
  const MegatronSettings& set = problem.runtime.megatron;
  const std::int64_t engine = set.transformer_engine_version;
  const bool experts = expert_layers(problem, stage) > 0;
  const bool grouped = experts && set.moe_grouped_gemm;
  const Workspace engines{"Transformer Engine", engine_workspaces(problem, grouped)};
  std::vector<Workspace> list;
  list.reserve(4);
  const auto add_placeholders = [&] {
    const Bytes bytes = placeholder_gradients(problem, inventory, stage);
    if (bytes > Bytes{}) list.push_back({"placeholder weight gradients, one a shape", bytes});
  };
  // Local layers take Transformer Engine's GEMM for experts alone.
  if (set.local_layers()) {
    list.push_back(cublas);
    if (experts && engine != MegatronSettings::no_engine) list.push_back(engines);
    add_placeholders();
    return list;
  }
  // A stage of Transformer Engine modules alone runs no PyTorch GEMM; the output head does, and so
  // did the router with Megatron-Core before 2026-03 (d3528a2130) and engines since 2.10.
  constexpr std::int64_t router_falls_back = 210;
  constexpr std::int64_t router_mended = 214;
  const bool router = experts && engine >= router_falls_back && engine < router_mended;
  list.push_back(engines);
  if (stage.head || router) list.push_back(cublas);
  add_placeholders();
  if (is_quantized(problem.training.precision)) {
    list.push_back({problem.training.precision == Precision::fp8 ? "8-bit copies of the weights"
                                                                 : "4-bit copies of the weights",
                    fp8_weight_copies(problem, inventory, stage)});
  }
  return list;
}

}  // namespace zeroplan
