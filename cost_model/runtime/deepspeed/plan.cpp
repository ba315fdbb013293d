// What does DeepSpeed hold besides the states? Front door: deepspeed_plan.
#include "cost_model/runtime/deepspeed/plan.hpp"

#include <algorithm>

#include "cost_model/question/units.hpp"
#include "cost_model/runtime/deepspeed/buckets.hpp"
#include "cost_model/states/secondary_copy.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t fp32 = 4;
constexpr std::int64_t fp64 = 8;

// What stages 1 and 2 take to look at a gradient: the fp64 form of this rank's `part` for the norm,
// and for overflow, of all `elements` looked at, their fp32 form, since 0.14 with three masks and
// the last of them widened. 0.19 asks for the extremes and makes nothing (stage_1_and_2.py
// get_grad_norm_direct; runtime/utils.py has_inf_or_nan of 0.19.6).
Bytes looked_at(const DeepspeedSettings& set, std::int64_t elements, std::int64_t part) {
  constexpr std::int64_t with_masks = 14;
  constexpr std::int64_t with_extremes = 19;
  const std::int64_t norm = fp64 * part;
  if (set.version >= with_extremes) return Bytes{norm};
  const std::int64_t wide = set.version >= with_masks ? fp32 + 3 + fp32 : fp32;
  return Bytes{std::max(norm, wide * elements)};
}

// What of a micro-batch's reduced gradients passes through the GPU on its way to the host, at most.
// Stage 3 holds its part of a bucket there, and takes the norm of one tensor's part in fp64, 250
// million elements at a time (stage3.py partition_grads, _constant_buffered_norm2); the flat buffer
// that is then searched for overflow is the host's, and the norm a sum of numbers. Stages 1 and 2
// look for overflow in each whole gradient (stage_1_and_2.py copy_grads_in_partition).
Bytes passing_to_host(const Problem& p,
                      std::int64_t element,
                      std::int64_t all,
                      std::int64_t largest,
                      std::int64_t slice) {
  const DeepspeedSettings& set = p.runtime.deepspeed;
  if (p.layout.zero != ZeroStage::parameters) return looked_at(set, largest, slice);
  constexpr std::int64_t norm_buffer = 250'000'000;
  const std::int64_t ranks = shard_widths(p).dense;
  const std::int64_t bucket = std::min(all, std::max(largest, set.reduce_bucket_size));
  const std::int64_t accumulated = set.fp32_grad_accumulation ? fp32 : element;
  return Bytes{accumulated * ceil_div(bucket, ranks) +
               fp64 * std::min(ceil_div(largest, ranks), norm_buffer)};
}

// The first tensors of each layer and of the head.
std::vector<std::size_t> begins_of(const Problem& p,
                                   const WeightInventory& inventory,
                                   const Stage& stage) {
  std::vector<std::size_t> begins;
  std::size_t begin = 0;
  visit_weights(p, inventory, stage, [&](const std::vector<Weight>& weights) {
    begins.push_back(begin);
    begin += weights.size();
  });
  if (stage.embedding) begins.erase(begins.begin());
  return begins;
}

// What is gathered while the gradient of each tensor is made; of a small one, as of that before it.
std::vector<std::int64_t> live_by_tensor(const std::vector<std::int64_t>& sizes,
                                         const LiveParameters& live) {
  std::vector<std::int64_t> beside;
  beside.reserve(sizes.size());
  std::size_t comes = 0;
  for (const std::int64_t size : sizes) {
    if (size > largest_persistent && comes < live.beside.size()) ++comes;
    beside.push_back(comes == 0 ? live.at_turn : live.beside[comes - 1]);
  }
  return beside;
}

}  // namespace

HostBuffers buffers_on_host(const Problem& p, const std::vector<std::int64_t>& sizes) {
  if (!steps_on_host(p) || p.layout.zero == ZeroStage::parameters || sizes.empty()) return {};
  const std::int64_t element = state_recipe(p).parameter_bytes;
  HostBuffers buffers{.gradient = Bytes{element * *std::ranges::max_element(sizes)}};
  if (micro_batches(p) > 1) {
    const Owned owned =
        owned_elements(sizes, shard_widths(p).dense, p.runtime.deepspeed.reduce_bucket_size);
    buffers.accumulated = Bytes{element * owned.any.elements};
  }
  return buffers;
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
  const Owned elements = owned_elements(sizes, ranks, set.reduce_bucket_size);
  const Bytes owned{element * elements.any.elements};
  const bool narrow = element < fp32;

  const bool as_made = reduces_as_made(p);
  DeepspeedPlan plan{.optimizer = as_made ? DeepspeedOptimizer::stage2 : deepspeed_optimizer(p),
                     .keeps_large = as_made};
  const LiveParameters live = live_parameters(p, inventory);
  plan.calls = deepspeed_calls(p, inventory, stage, live);
  bool reduces_in_head = false;
  const auto take_copies = [&](const Copies& copies, const std::vector<std::int64_t>& beside) {
    plan.copy = Bytes{element * copies.most};
    plan.copy_beside_last = Bytes{element * copies.beside_last};
    plan.copy_at_end = Bytes{element * copies.at_end};
    const std::vector<std::size_t> begins = begins_of(p, inventory, stage);
    plan.reductions = reductions_in_layers(copies.earlier, sizes, begins, beside);
    for (const BucketCopy& early : copies.earlier) {
      if (early.hand < begins.back()) continue;
      reduces_in_head = true;
      plan.copy_in_head = std::max(plan.copy_in_head, Bytes{element * early.elements});
    }
  };
  switch (plan.optimizer) {
    case DeepspeedOptimizer::fused:
      // All gradients have two fp32 forms: a list of tensors, and one tensor made of them.
      plan.flattened = plan.widened = Bytes{narrow ? fp32 * all : 0};
      plan.copy = copy;
      break;
    case DeepspeedOptimizer::bf16:
      plan.resident_gradients = states.gradients;
      // The one fp32 gradient buffer is cast to the format of the communication.
      plan.boundary = Bytes{element * all};
      break;
    case DeepspeedOptimizer::stage1:
      if (widens_gradients(p)) {
        plan.widening = {shard, set.reduce_bucket_size};
        plan.bucket = Bytes{fp32 * set.reduce_bucket_size * (1 + set.overlap_comm)};
        plan.boundary = Bytes{fp32 * shard};
        plan.check = Bytes{most_with_slice(sizes, ranks, 0, looked_at(set, 1, 1).count())};
        break;
      }
      // Before 0.6 stage 1 had no bucket: it flattened gradients as it reduced them.
      plan.copies_owned = has_stage1_bucket(set);
      if (plan.copies_owned) {
        // One more bucket to overlap, and one that the pipeline engine asks for.
        plan.bucket = bucket * (1 + set.overlap_comm + (p.layout.pp > 1));
      } else {
        plan.copy = copy;
        plan.check = Bytes{(fp32 + fp64) * slice};  // of the overflow check and of the norm
      }
      plan.boundary = owned;
      if (plan.copies_owned)
        plan.taken_in = Bytes{element * (elements.any.elements - elements.beside.elements)};
      plan.flattened = Bytes{element * shard};
      plan.widened = Bytes{narrow ? fp32 * shard : 0};
      break;
    case DeepspeedOptimizer::stage2: {
      plan.bucket = bucket * (set.overlap_comm ? 2 : 1);
      take_copies(copied_elements(sizes, ranks, set.reduce_bucket_size), {});
      if (set.reduce_bucket_size >= all) {
        plan.owned_from = DeepspeedPlan::Owned::at_end;
      } else if (!reduces_in_head) {
        plan.owned_from = plan.reductions.empty() ? DeepspeedPlan::Owned::in_embedding
                                                  : DeepspeedPlan::Owned::in_layers;
      }
      plan.check = looked_at(set, slice, slice);
      plan.owns_part = owns_part(p);
      if (plan.owns_part) {
        plan.owned = Bytes{fp32 * shard};
        plan.part_widened = Bytes{fp32 * slice};
        break;
      }
      // Owned gradients are those of the rank that needs most at the time: in the backward pass of
      // one that has its own early, when all are looked at not of one whose largest slice another
      // has.
      const Bytes early{element * elements.early.elements};
      const bool at_end = plan.owned_from == DeepspeedPlan::Owned::at_end;
      plan.owned = at_end ? owned : early;
      // In a later micro-batch a rank has its own gradients twice: one that has them early from
      // then on, which may be more than what another has that gets them at the end.
      plan.added = at_end ? owned : std::max(Bytes{}, early + early - owned);
      plan.added_late = owned - plan.added;
      plan.keeps_head = keeps_head(p, sizes, elements);
      if (plan.keeps_head) {
        plan.owned = Bytes{element * elements.early_without_last.elements};
      }
      plan.owned_late = owned - plan.owned;
      plan.check =
          Bytes{most_with_slice(sizes, ranks, element, looked_at(set, 1, 1).count())} - owned;
      plan.flattened = Bytes{element * shard};
      plan.widened = Bytes{narrow ? fp32 * shard : 0};
      break;
    }
    case DeepspeedOptimizer::stage3: {
      const std::int64_t group = std::min(shard, set.sub_group_size);
      plan.resident_gradients = states.gradients;
      plan.resident_bucket = bucket;
      take_copies(scattered_elements(sizes, ranks, set.reduce_bucket_size),
                  live_by_tensor(sizes, live));
      plan.live = Bytes{element * live.at_turn};
      plan.ahead_in_head = Bytes{element * std::max<std::int64_t>(0, live.at_head - live.at_turn)};
      plan.gathered = live.in_layers;
      plan.live_at_end = Bytes{element * live.at_end};
      plan.flattened = Bytes{element * group};
      plan.widened = Bytes{narrow && !set.fp32_grad_accumulation ? fp32 * group : 0};
      // The norm of a tensor's part in fp64; the search of fp16's whole flat buffer for overflow
      // makes its absolute values and a mask (stage3.py get_grad_norm_direct, has_overflow).
      plan.check = Bytes{fp64 * ceil_div(largest, ranks)};
      if (p.training.precision == Precision::fp16) {
        const std::int64_t accumulated = set.fp32_grad_accumulation ? fp32 : element;
        plan.check = std::max(plan.check, Bytes{(accumulated + 1) * shard});
      }
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
  // The step is the host's: gradients have gone there, and so has the search for overflow.
  plan.flattened = plan.widened = plan.check = plan.boundary = Bytes{};
  plan.to_host = passing_to_host(p, element, all, largest, slice);
  plan.on_host = buffers_on_host(p, sizes);
  if (plan.optimizer == DeepspeedOptimizer::stage2) {
    plan.owned = plan.added = plan.owned_late = plan.added_late = Bytes{};
  }
  return plan;
}

}  // namespace zeroplan
