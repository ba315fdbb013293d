// Which code ran at a date? Front door: fsdp2_recipe.
#include "cost_model/runtime/fsdp2/recipe.hpp"

#include "cost_model/runtime/fsdp2/float8.hpp"
#include "cost_model/states/fsdp2_wrapping.hpp"

namespace zeroplan {
namespace {

// Days from which a change is in, by torchtitan commit.
constexpr std::int64_t prediction_deleted = 20240612;        // e29b6b4d4
constexpr std::int64_t reduce_on_compute_stream = 20240701;  // PyTorch, mid-2024
// foreach_reduce's loop over parameters, for gradients cut along another dimension than the first:
// its variable outlives the list (pytorch #137496, _fsdp_collectives.py:504 @2.10).
constexpr std::int64_t reduction_loops = 20241010;
// FSDPParamGroup._all_reduce_state keeps what replicas summed up in the reduction's format until
// finalize_backward (pytorch #140044, _fsdp_param_group.py @2.10).
constexpr std::int64_t replica_sums_held = 20241113;
constexpr std::int64_t script_expands_segments = 20241022;  // a5e57e4a9
constexpr std::int64_t magnitudes_dropped = 20250206;       // 88247277c
constexpr std::int64_t fused_optimizer = 20250224;          // 6e4988550
// nn.RMSNorm since 3b39d7ab0 (2025-03-19); one kernel in PyTorch from 2.9 on, in nightlies of
// mid-2025 (recalled).
constexpr std::int64_t fused_norm = 20250801;
constexpr std::int64_t loss_compiled = 20250611;         // e7c0cae, at the latest
constexpr std::int64_t exchanges_listed = 20250906;      // c4e229115
constexpr std::int64_t native_grouped_query = 20260127;  // ff0829c10
constexpr std::int64_t captured_steps = 20260813;        // f84224af0
constexpr std::int64_t widened_rotation = 20260314;      // 3da072e7b, of cosine and sine
constexpr std::int64_t spmd_types = 20260818;            // 5ab3a0fd1
constexpr std::int64_t fused_projection = 20260624;      // 3396a4b37
constexpr std::int64_t inputs_as_they_are = 20260408;    // 21c4913ff, cast_forward_inputs=False
// Experts' rows times scores (models/common/moe.py); before, torch.bmm of both.
constexpr std::int64_t rows_weighed = 20260406;  // 8bc267dea
// The router's product runs under torch.autocast in fp32 (models/common/moe.py); before, its scores
// were widened (0.2.2 models/moe/moe.py TokenChoiceTopKRouter).
constexpr std::int64_t router_widened = 20260304;  // ab5ed59f8
constexpr std::int64_t shared_last = 20260520;     // 963c20cba
// One list of operators to save for all models, PyTorch's default one and more
// (distributed/activation_checkpoint.py _get_default_save_ops). None has had grouped products
// (pytorch torch/_functorch/partitioners.py get_default_op_list @2.14).
constexpr std::int64_t one_list_of_saved = 20260323;  // 114151ad4
constexpr std::int64_t rotary_in_layers = 20260605;   // 02d24f017
// Language models no longer run scaled_dot_product_attention, whose ring under context parallelism
// merges fp32 results by head, but flex attention, which is given keys and values of the whole
// sequence (pytorch torch/distributed/tensor/experimental/_context_parallel/_attention.py,
// _SDPAMerger and flex_cp_allgather).
constexpr std::int64_t masked_attention = 20260609;  // 169545712
// Before, the embedding is DTensor's, whose embedding_dense_backward has no rule for a weight cut
// along its rows (pytorch torch/distributed/tensor/_ops/_embedding_ops.py); from then on it looks
// up local rows.
constexpr std::int64_t local_embedding = 20260611;  // 1cc10d1ed

// The loop is a function's, and autograd adds to each leaf's gradient in the reduction's format
// (pytorch _fsdp_collectives.py _default_reduce_scatter_input_fn, _fsdp_param.py
// unsharded_grad_dtype @2.15.0). The nightly of the day has it, 2.14.1 has not.
constexpr std::int64_t leaves_accumulate = 215;
constexpr std::int64_t nightly_has_it = 20260926;

LossCode loss_code(const Problem& p, std::int64_t date) {
  const Fsdp2Settings& set = p.runtime.fsdp2;
  if (set.layers == LayerCode::huggingface) {
    return set.logits == Logits::kept ? LossCode::huggingface : LossCode::plain;
  }
  const bool compiled = set.compiles_loss() && date >= loss_compiled;
  if (p.layout.tp > 1 && set.loss_parallel) {
    return compiled ? LossCode::compiled_parallel : LossCode::parallel;
  }
  if (compiled) return LossCode::compiled;
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

// Whether the list of operators to save names the all-to-all that runs: spmd_types has one of its
// own; before one list, DeepSeek's and Llama 4's named it.
bool saves_exchanges(const Problem& p) {
  const std::int64_t date = p.runtime.fsdp2.recipe_date;
  const std::string_view family = p.model.family;
  if (date >= spmd_types) return false;
  if (date >= one_list_of_saved) return true;
  const bool lists = family.starts_with("deepseek") || family.starts_with("llama4");
  return lists && date >= exchanges_listed;
}

OptimizerCode optimizer_code(const Fsdp2Settings& set) {
  constexpr std::int64_t fused = 454;  // transformers, with PyTorch 2.8
  if (set.optimizer_code != OptimizerCode::recipe) return set.optimizer_code;
  const bool titan = set.layers == LayerCode::torchtitan;
  const bool is_fused =
      titan ? set.recipe_date >= fused_optimizer : set.transformers_version >= fused;
  return is_fused ? OptimizerCode::fused : OptimizerCode::foreach;
}

// trainer.py _validate_cuda_graphs: neither pipelines nor dispatchers that wait for the host.
bool captures_steps(const Problem& p) {
  const Fsdp2Settings& set = p.runtime.fsdp2;
  if (set.disable_cuda_graphs != RecipeSwitch::recipe) {
    return set.disable_cuda_graphs == RecipeSwitch::off;
  }
  return set.layers == LayerCode::torchtitan && set.recipe_date >= captured_steps &&
         p.layout.pp == 1 && p.layout.ep == 1;
}

}  // namespace

std::int64_t torch_version(const Fsdp2Settings& set) {
  if (set.torch_version > 0) return set.torch_version;
  const bool newest = set.layers == LayerCode::huggingface || set.recipe_date >= nightly_has_it;
  return newest ? leaves_accumulate : leaves_accumulate - 1;
}

bool leaves_whole(const Problem& p, MicroBatch micro_batch) {
  return is_pipelined(p) || (defers_reduction(p) && micro_batch != MicroBatch::last);
}

bool joins_ranks(const Problem& p) {
  const Fsdp2Settings& set = p.runtime.fsdp2;
  return set.layers == LayerCode::torchtitan && !set.async_tensor_parallel;
}

Fsdp2Recipe fsdp2_recipe(const Problem& p) {
  const Fsdp2Settings& set = p.runtime.fsdp2;
  const std::int64_t date = set.recipe_date;
  const bool titan = set.layers == LayerCode::torchtitan;
  Fsdp2Recipe recipe;
  if (!titan) {
    constexpr std::int64_t takes_groups = 454;  // sdpa_attention.py, use_gqa_in_sdpa
    recipe.code = huggingface_code(p);
    recipe.code.style.repeats_keys |= set.transformers_version < takes_groups;
  }
  recipe.code.loss = loss_code(p, date);
  recipe.code.loss_parts = loss_parts(p);
  recipe.loss_in_forward = !titan;
  recipe.keeps_gradients = captures_steps(p);
  recipe.optimizer = optimizer_code(set);
  recipe.reduces_on_own_stream = date < reduce_on_compute_stream;
  const bool accumulates_in_leaves = torch_version(set) >= leaves_accumulate;
  recipe.holds_last_gradient = date >= reduction_loops && !accumulates_in_leaves;
  recipe.adds_at_once = accumulates_in_leaves;
  // But where a gradient is there already (_fsdp_param_group.py _set_unsharded_grad_dtypes
  // @2.15.0). A loss in parts runs one of the modules that its group holds, and that hook does not
  // run.
  recipe.widens_gradients = accumulates_in_leaves && reduced_bytes(p) > set.mixed_precision_bytes;
  recipe.holds_replica_sum = p.layout.hsdp > 0 && date >= replica_sums_held;
  recipe.whole_embedding_gradient = titan && p.layout.tp > 1 && date < local_embedding;
  recipe.expandable_segments =
      set.expandable_segments == SegmentMode::expandable ||
      (set.expandable_segments == SegmentMode::script && titan && date >= script_expands_segments);

  EagerStyle& style = recipe.code.style;
  style.compiled = set.compiles_layers();
  style.composite_norm |= titan && date < fused_norm;
  style.complex_rotary |= titan && !p.model.attention.qk_norm;
  style.names_keys = !titan || !style.complex_rotary;
  recipe.cosine_rotary =
      titan && !style.complex_rotary && !p.model.attention.mla && p.model.learned_positions == 0;
  recipe.casts_rotary = style.turns_wide || (recipe.cosine_rotary && date < inputs_as_they_are);
  style.turns_wide = false;
  const bool ring = titan && p.layout.cp > 1 && date < masked_attention;
  style.merges_ranges = ring;
  const bool turns = style.complex_rotary || recipe.cosine_rotary;
  style.gathers_rotary = (style.complex_rotary && ring) || (turns && date >= rotary_in_layers);
  style.wide_rotary = recipe.cosine_rotary && date >= widened_rotation;
  recipe.rotary_in_layers = titan && date >= rotary_in_layers;
  // torch/distributed/_functional_collectives.py all_gather_tensor, reduce_scatter_tensor;
  // spmd_types _collectives.py moves the dimension to the front, which is there already of one
  // sample.
  style.joins_gathered = joins_ranks(p);
  style.orders_reduced = style.joins_gathered && (date < spmd_types || p.layout.micro_batch > 1);
  style.keeps_context = titan && p.layout.cp > 1 && date >= masked_attention;
  style.keeps_softmax |= titan;
  style.widens_router |= titan && date >= router_widened && set.mixed_precision_bytes < 4;
  style.widens_routed = titan;
  style.weighs_rows = titan && date >= rows_weighed;
  style.shared_last |= titan && date >= shared_last;
  style.saves_experts = !titan;
  style.saves_exchanges = !titan || saves_exchanges(p);
  // The list names _c10d_functional.reduce_scatter_tensor; spmd_types sends by
  // torch.distributed.reduce_scatter_tensor (spmd_types _collectives.py).
  style.saves_reductions = !titan || date < spmd_types;
  style.repeats_keys |= titan && date < native_grouped_query;
  style.fused_qkv |= titan && date >= fused_projection && !p.model.attention.mla;
  style.keeps_magnitudes = p.training.precision == Precision::fp8 && !set.compiles_layers() &&
                           titan && date < magnitudes_dropped;
  style.narrow_gathers = p.training.precision == Precision::fp8 && gathers_eight_bit(p);
  style.sends_in_parts = set.async_tensor_parallel;
  style.checkpoint = checkpoint(p);
  return recipe;
}

}  // namespace zeroplan
