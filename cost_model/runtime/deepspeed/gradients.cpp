// What becomes of gradients, and on which rank are they most? Front doors: deepspeed_optimizer,
// deepspeed_rank.
#include "cost_model/runtime/deepspeed/gradients.hpp"

#include <algorithm>

#include "cost_model/states/state_recipe.hpp"

namespace zeroplan {
namespace {

// The class of Qwen3.5's linear attention makes its last projection before the first ones
// (transformers v5.24.0 models/qwen3_5/modeling_qwen3_5.py Qwen3_5GatedDeltaNet).
std::vector<Weight> as_declared(std::vector<Weight> weights) {
  const auto first = std::ranges::find(weights, "in_proj_qkv", &Weight::name);
  const auto last = std::find_if(
      first, weights.end(), [](const Weight& w) { return w.name == std::string_view("o_proj"); });
  if (last != weights.end()) std::rotate(first, last, last + 1);
  return weights;
}

}  // namespace

bool steps_on_host(const Problem& p) {
  return p.layout.offload == Offload::optimizer || p.layout.offload == Offload::parameters;
}

std::vector<std::int64_t> tensor_sizes(const Problem& p,
                                       const WeightInventory& inventory,
                                       const Stage& stage) {
  std::vector<std::int64_t> sizes;
  visit_weights(p, inventory, stage, [&](const std::vector<Weight>& weights) {
    const auto add = [&](const std::vector<Weight>& list) {
      for (const Weight& w : list) sizes.push_back(local_weight(w, p).elements());
    };
    p.model.linear_attention ? add(as_declared(weights)) : add(weights);
  });
  return sizes;
}

DeepspeedOptimizer deepspeed_optimizer(const Problem& p) {
  const bool wide = p.runtime.deepspeed.fp32_grad_accumulation;
  switch (p.layout.zero) {
    case ZeroStage::none:
      return DeepspeedOptimizer::fused;
    case ZeroStage::optimizer:
      return wide && p.training.precision == Precision::bf16 && !steps_on_host(p)
                 ? DeepspeedOptimizer::bf16
                 : DeepspeedOptimizer::stage1;
    case ZeroStage::gradients:
      return DeepspeedOptimizer::stage2;
    case ZeroStage::parameters:
      break;
  }
  return DeepspeedOptimizer::stage3;
}

bool widens_gradients(const Problem& p) {
  return p.layout.zero == ZeroStage::optimizer && p.training.precision == Precision::fp16 &&
         p.runtime.deepspeed.fp32_grad_accumulation && !steps_on_host(p) &&
         !runs_megatron_layers(p);
}

bool leaves_widening_out(const Problem& p) {
  return p.layout.zero == ZeroStage::optimizer && p.training.precision == Precision::fp16 &&
         p.runtime.deepspeed.fp32_grad_accumulation && !widens_gradients(p);
}

bool reduces_as_made(const Problem& p) {
  const DeepspeedSettings& set = p.runtime.deepspeed;
  return p.layout.zero == ZeroStage::optimizer && set.overlap_comm && micro_batches(p) == 1 &&
         has_stage1_bucket(set) && !set.fp32_grad_accumulation && !steps_on_host(p) &&
         !runs_megatron_layers(p);
}

bool owns_part(const Problem& p) {
  return p.layout.zero == ZeroStage::gradients && p.training.precision != Precision::fp32 &&
         p.runtime.deepspeed.fp32_grad_accumulation && p.runtime.deepspeed.version >= 19;
}

bool keeps_head(const Problem& p, const std::vector<std::int64_t>& sizes, const Owned& owned) {
  return reduces_as_made(p) && sizes.back() > p.runtime.deepspeed.reduce_bucket_size &&
         owned.early_without_last.elements + sizes.back() > owned.early.elements;
}

std::int64_t deepspeed_rank(const Problem& p,
                            const WeightInventory& inventory,
                            const Stage& stage) {
  const bool owns_tensors =
      p.layout.zero == ZeroStage::optimizer || p.layout.zero == ZeroStage::gradients;
  if (!owns_tensors || widens_gradients(p)) return 0;
  const std::int64_t ranks = shard_widths(p).dense;
  if (owns_part(p)) return ranks - 1;
  const std::vector<std::int64_t> sizes = tensor_sizes(p, inventory, stage);
  const Owned owned = owned_elements(sizes, ranks, p.runtime.deepspeed.reduce_bucket_size);
  if (p.layout.zero == ZeroStage::gradients || reduces_as_made(p)) {
    if (keeps_head(p, sizes, owned)) return owned.early_without_last.rank;
    // Later micro-batches run beside all that the first has left.
    const bool early = owned.early.elements > 0 && micro_batches(p) == 1;
    return early ? owned.early.rank : owned.any.rank;
  }
  // At the boundary others' gradients are there, in the step two forms of its part.
  const StateRecipe recipe = state_recipe(p);
  const StageElements counts = stage_elements(p, inventory, stage, recipe.padding);
  const std::int64_t element = recipe.parameter_bytes, fp32 = 4;
  const std::int64_t boundary = element * (counts.full() + owned.beside.elements);
  const std::int64_t step = element * owned.any.elements + (element + fp32) * counts.shard();
  return boundary > step ? owned.beside.rank : owned.any.rank;
}

}  // namespace zeroplan
