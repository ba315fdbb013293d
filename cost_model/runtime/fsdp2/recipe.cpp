// Which code ran at a date? Front door: fsdp2_recipe.
#include "cost_model/runtime/fsdp2/recipe.hpp"

namespace zeroplan {
namespace {

// Days from which a change is in, by torchtitan commit.
constexpr std::int64_t prediction_deleted = 20240612;        // e29b6b4d4
constexpr std::int64_t reduce_on_compute_stream = 20240701;  // PyTorch, mid-2024
// foreach_reduce's loop over parameters, for gradients cut along another dimension than the first:
// its variable outlives the list (pytorch #137496, _fsdp_collectives.py:504 @2.10).
constexpr std::int64_t reduction_loops = 20241010;
constexpr std::int64_t script_expands_segments = 20241022;  // a5e57e4a9
constexpr std::int64_t magnitudes_dropped = 20250206;       // 88247277c
constexpr std::int64_t fused_optimizer = 20250224;          // 6e4988550
// nn.RMSNorm since 3b39d7ab0 (2025-03-19); one kernel in PyTorch from 2.9 on, in nightlies of
// mid-2025 (recalled).
constexpr std::int64_t fused_norm = 20250801;
constexpr std::int64_t loss_compiled = 20250611;         // e7c0cae, at the latest
constexpr std::int64_t native_grouped_query = 20260127;  // ff0829c10
constexpr std::int64_t fused_projection = 20260821;      // b5bcd76c6, at the latest
// One list of operators to save for all models, PyTorch's default one, in which grouped products
// are taken to be; before, Llama 4, DeepSeek and Qwen3 had lists without them (0.2.2
// models/qwen3/infra/parallelize.py, _op_sac_save_list).
constexpr std::int64_t one_list_of_saved = 20260323;  // 114151ad4
constexpr std::int64_t rotary_in_layers = 20260605;   // 02d24f017
// Language models no longer run scaled_dot_product_attention, whose ring under context parallelism
// merges fp32 results by head (pytorch
// torch/distributed/tensor/experimental/_context_parallel/_attention.py, _SDPAMerger).
constexpr std::int64_t masked_attention = 20260609;  // 169545712
// Before, the embedding is DTensor's, whose embedding_dense_backward has no rule for a weight cut
// along its rows (pytorch torch/distributed/tensor/_ops/_embedding_ops.py); from then on it looks
// up local rows.
constexpr std::int64_t local_embedding = 20260611;  // 1cc10d1ed

LossCode loss_code(const Problem& p, std::int64_t date) {
  const Fsdp2Settings& set = p.runtime.fsdp2;
  if (set.layers == LayerCode::huggingface) return LossCode::huggingface;
  if (p.layout.tp > 1 && set.loss_parallel) return LossCode::parallel;
  if (set.compiles_loss() && date >= loss_compiled) return LossCode::compiled;
  return date >= prediction_deleted ? LossCode::plain : LossCode::fp32_logits;
}

Checkpoint checkpoint(const Problem& p) {
  switch (p.layout.recompute) {
    case Recompute::none:
      return Checkpoint::none;
    case Recompute::selective:
      return p.runtime.fsdp2.selective_ac_layers > 0 ? Checkpoint::layer : Checkpoint::operators;
    case Recompute::full:
      break;
  }
  return Checkpoint::layer;
}

}  // namespace

Fsdp2Recipe fsdp2_recipe(const Problem& p) {
  const Fsdp2Settings& set = p.runtime.fsdp2;
  const std::int64_t date = set.recipe_date;
  const bool titan = set.layers == LayerCode::torchtitan;
  Fsdp2Recipe recipe;
  if (!titan) recipe.code = huggingface_code(p);
  recipe.code.loss = loss_code(p, date);
  recipe.code.loss_parts = loss_parts(p);
  recipe.foreach_optimizer = !titan || date < fused_optimizer;
  recipe.reduces_on_own_stream = date < reduce_on_compute_stream;
  recipe.holds_last_gradient = date >= reduction_loops;
  recipe.whole_embedding_gradient = titan && p.layout.tp > 1 && date < local_embedding;
  recipe.expandable_segments =
      set.expandable_segments == SegmentMode::expandable ||
      (set.expandable_segments == SegmentMode::script && titan && date >= script_expands_segments);

  EagerStyle& style = recipe.code.style;
  style.compiled = set.compiles_layers();
  style.composite_norm |= titan && date < fused_norm;
  style.complex_rotary = titan && !p.model.attention.qk_norm;
  recipe.casts_rotary =
      titan && !style.complex_rotary && !p.model.attention.mla && p.model.learned_positions == 0;
  const bool ring = titan && p.layout.cp > 1 && date < masked_attention;
  style.merges_ranges = ring;
  style.gathers_rotary = style.complex_rotary && (ring || date >= rotary_in_layers);
  recipe.rotary_in_layers = titan && date >= rotary_in_layers;
  style.widens_routed = titan;
  style.saves_experts = !titan || date >= one_list_of_saved;
  style.repeats_keys |= titan && date < native_grouped_query;
  style.fused_qkv = titan && date >= fused_projection && !p.model.attention.mla;
  style.keeps_magnitudes = p.training.precision == Precision::fp8 && !set.compiles_layers() &&
                           titan && date < magnitudes_dropped;
  style.checkpoint = checkpoint(p);
  return recipe;
}

}  // namespace zeroplan
