#pragma once
// DeepSpeed: its engine around Hugging Face's layers, or Megatron-DeepSpeed's layers in its
// pipeline.
//
// 16-bit parameters and gradients, an fp32 master copy and moments in one flat buffer, each rank
// its part from ZeRO 1 on. Stage 0 all-reduces gradients at the boundary of accumulation. Stage 1
// sums them after the last micro-batch, stage 2 each one, bucket by bucket: a gradient is copied
// into the bucket, the bucket reduced (a second one fills meanwhile with overlap_comm), the rank's
// part added to what it owns, the gradient freed. BF16_Optimizer, which fp32 accumulation asks for
// at stage 1, keeps whole fp32 gradients beside the 16-bit ones instead. Stage 3 divides each
// parameter too: a module's are gathered one by one ahead of it, up to stage3_max_live_parameters
// of them, and released after it unless they are used again soon. The optimizer widens its part of
// the gradients, sub-group by sub-group at stage 3, and gathers 16-bit parameters in stages 1
// and 2. Offload moves optimizer states (and at stage 3 parameters) to the host, where Adam then
// runs. The pipeline engine is 1F1B, with buffers for each micro-batch in flight, at stage 0 or 1.

#include "cost_model/legality/legality.hpp"

namespace zeroplan {

extern const RuntimeCode deepspeed_code;
extern const RuleBook deepspeed_rules;

std::vector<std::int64_t> deepspeed_split(const Problem& problem);
StateRecipe deepspeed_state_recipe(const Problem& problem);
Behind deepspeed_replicas(const Problem& problem, const CollectiveLoad& load);

std::vector<ShardingSettings> deepspeed_knobs(const GivenSettings& given, const Problem& so_far);
void take_deepspeed_layout(const RuntimeSpec& asked, const Layout& layout, RuntimeSpec& taken);

}  // namespace zeroplan
