// What does DeepSpeed hold besides the states? Front door: deepspeed_plan.
#include "cost_model/program/deepspeed/plan.hpp"

#include <algorithm>

#include "cost_model/memory/secondary_copy.hpp"
#include "cost_model/units.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t fp32 = 4;
constexpr std::int64_t with_stage1_bucket = 6;  // 0.6; not in 0.5.10

// Most elements of whole tensors that touch the part of one rank.
std::int64_t most_owned(const std::vector<std::int64_t>& sizes, std::int64_t ranks) {
  std::int64_t all = 0;
  for (const std::int64_t size : sizes) all += size;
  const std::int64_t part = ceil_div(all, ranks);
  std::int64_t most = 0;
  std::size_t first = 0;
  std::int64_t start = 0;  // of tensor `first`
  for (std::int64_t rank = 0; rank < ranks && first < sizes.size(); ++rank) {
    const std::int64_t low = rank * part;
    while (first < sizes.size() && start + sizes[first] <= low) start += sizes[first++];
    std::int64_t owned = 0;
    std::int64_t at = start;
    for (std::size_t i = first; i < sizes.size() && at < low + part; ++i) {
      owned += sizes[i];
      at += sizes[i];
    }
    most = std::max(most, owned);
  }
  return most;
}

// Gathered elements around the turn from forward to backward pass: a module, what is prefetched
// (twice, since several tensors are gathered as one and copied out), and the tail that is used
// again within the reuse distance. With recompute the recorded order holds each layer three times.
std::int64_t live_elements(const Problem& p, const WeightInventory& inventory, std::int64_t all) {
  const DeepspeedSettings& set = p.runtime.deepspeed;
  const std::int64_t times = p.layout.recompute == Recompute::full ? 3 : 2;
  const std::int64_t kept =
      std::min({all, set.stage3_max_live_parameters,
                std::max(set.stage3_max_reuse_distance / times, widest_layer(p, inventory))});
  return kept + 2 * std::min(all, set.stage3_prefetch_bucket_size);
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
    for (const Weight& w : weights) sizes.push_back(local_weight(w, p).elements());
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

DeepspeedPlan deepspeed_plan(const Problem& p,
                             const WeightInventory& inventory,
                             const Stage& stage) {
  const DeepspeedSettings& set = p.runtime.deepspeed;
  const std::int64_t element = p.training.precision == Precision::fp32 ? 4 : 2;
  const std::vector<std::int64_t> sizes = tensor_sizes(p, inventory, stage);
  const std::int64_t ranks = shard_widths(p).dense;
  const StageElements counts = stage_elements(p, inventory, stage, state_recipe(p).padding);
  const ModelStates states = model_states(p, inventory, stage);
  const std::int64_t all = counts.full();
  const std::int64_t shard = counts.shard();
  const std::int64_t largest = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
  const std::int64_t slice = std::min(largest, shard);
  const Bytes bucket{element * set.reduce_bucket_size};  // whole, however small the model
  const Bytes copy{element * std::min(set.reduce_bucket_size, all)};
  const Bytes owned{element * most_owned(sizes, ranks)};
  const bool narrow = element < fp32;

  DeepspeedPlan plan{.optimizer = deepspeed_optimizer(p)};
  switch (plan.optimizer) {
    case DeepspeedOptimizer::fused:
      // Both fp32 forms of all gradients: a list of tensors, and one made of them.
      plan.flattened = plan.widened = Bytes{narrow ? fp32 * all : 0};
      plan.copy = copy;
      break;
    case DeepspeedOptimizer::bf16:
      plan.resident_gradients = states.gradients;
      // The one fp32 gradient buffer is cast to the format of the communication.
      plan.boundary = Bytes{element * all};
      break;
    case DeepspeedOptimizer::stage1:
      // Before 0.6 stage 1 had no bucket: it flattened gradients as it reduced them.
      plan.copies_owned = set.version >= with_stage1_bucket;
      if (plan.copies_owned) {
        plan.bucket = bucket * (p.layout.pp > 1 ? 2 : 1);
      } else {
        plan.copy = copy;
        plan.check = Bytes{(fp32 + 8) * slice};  // fp32 for the overflow check, fp64 for the norm
      }
      plan.boundary = owned;
      plan.flattened = Bytes{element * shard};
      plan.widened = Bytes{narrow ? fp32 * shard : 0};
      break;
    case DeepspeedOptimizer::stage2:
      plan.bucket = bucket * (set.overlap_comm ? 2 : 1);
      plan.copy = copy;
      plan.owned = owned;
      plan.flattened = Bytes{element * shard};
      plan.widened = Bytes{narrow ? fp32 * shard : 0};
      plan.check = Bytes{11 * slice};
      break;
    case DeepspeedOptimizer::stage3: {
      const std::int64_t group = std::min(shard, set.sub_group_size);
      plan.resident_gradients = states.gradients;
      plan.resident_bucket = bucket;
      plan.copy = copy;
      plan.live = Bytes{element * live_elements(p, inventory, all)};
      plan.flattened = Bytes{element * group};
      plan.widened = Bytes{narrow && !set.fp32_grad_accumulation ? fp32 * group : 0};
      plan.check = Bytes{(set.fp32_grad_accumulation ? 5 : 3) * shard};
      break;
    }
  }
  if (set.gathers_on_save && plan.optimizer == DeepspeedOptimizer::stage3) {
    plan.gathered_on_save = Bytes{element * largest};
  }
  const std::int64_t secondary = secondary_ranks(p);
  if (secondary > 1 && plan.optimizer == DeepspeedOptimizer::stage3) {
    plan.secondary = Bytes{ceil_div(element * all, secondary)};
  }
  if (!steps_on_host(p)) return plan;
  // The step is the host's: gradients have gone there.
  plan.flattened = plan.widened = Bytes{};
  if (plan.optimizer == DeepspeedOptimizer::stage3) return plan;
  plan.host_buffer = Bytes{element * largest};
  if (micro_batches(p) > 1) plan.accumulated_on_host = owned;
  if (plan.optimizer == DeepspeedOptimizer::stage2) plan.owned = Bytes{};
  return plan;
}

}  // namespace zeroplan
