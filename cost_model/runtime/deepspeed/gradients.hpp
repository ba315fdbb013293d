#pragma once
// What becomes of gradients under DeepSpeed's optimizers, and which rank holds most of them.

#include "cost_model/question/problem.hpp"
#include "cost_model/runtime/deepspeed/buckets.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// Which of DeepSpeed's optimizer classes runs (runtime/engine.py).
enum class DeepspeedOptimizer {
  fused,   // FP16_Optimizer: stage 0
  bf16,    // BF16_Optimizer: stage 1 with fp32 accumulation of bf16 gradients
  stage1,  // DeepSpeedZeroOptimizer, gradients whole until the boundary
  stage2,  // DeepSpeedZeroOptimizer, gradients reduced as they come
  stage3,  // DeepSpeedZeroOptimizer_Stage3
};

/// Whether the optimizer's states, and so its step, are the host's.
bool steps_on_host(const Problem& problem);

DeepspeedOptimizer deepspeed_optimizer(const Problem& problem);

/// Whether stage 1 keeps an fp32 form of every fp16 gradient from when it is made to the boundary,
/// where ranks take their parts out of it: grad_accum of DeepSpeed 0.19.8 runtime/zero/
/// stage_1_and_2.py. Asked of the step of a GPU and of models that no pipeline runs.
bool widens_gradients(const Problem& problem);

/// Whether fp16 gradients that stage 1 adds up in fp32 are counted as 16 bits: what widens them
/// elsewhere is not modelled.
bool leaves_widening_out(const Problem& problem);

/// Whether stage 1 reduces gradients as stage 2 does, in the only backward pass of a step, which
/// `overlap_comm` makes it do in the last one (runtime/zero/stage_1_and_2.py process_gradients).
/// Not asked of those that add up in fp32, which are described as if they were kept.
bool reduces_as_made(const Problem& problem);

/// Whether fp32 gradients of stage 2 are added to this rank's part of the flat buffer itself, which
/// the step reads (stage_1_and_2.py _use_compact_grad_partition_buffer).
bool owns_part(const Problem& problem);

/// Whether stage 1 has a reduction bucket: in 0.5.10 it flattened gradients as it reduced them.
inline bool has_stage1_bucket(const DeepspeedSettings& set) {
  return set.version >= 6;
}

/// Whether, where stage 1 reduces gradients as they are made, a rank that owns nothing of the
/// output layer has more than any that owns some: it keeps that whole gradient where that is larger
/// than a bucket. `sizes`: tensor_sizes.
bool keeps_head(const Problem& problem, const std::vector<std::int64_t>& sizes, const Owned& owned);

/// The rank that deepspeed_plan is of: under stages 1 and 2 a rank holds whole gradients of tensors
/// of which it may own a part alone, the earlier the more beside them. Where each has its part
/// alone, the first's stands beside all widened gradients, the last's beside most of those that
/// stage 2 reduces.
std::int64_t deepspeed_rank(const Problem& problem,
                            const WeightInventory& inventory,
                            const Stage& stage);

/// Elements of every tensor of the stage, in the order of the flat buffer.
std::vector<std::int64_t> tensor_sizes(const Problem& problem,
                                       const WeightInventory& inventory,
                                       const Stage& stage);

}  // namespace zeroplan
