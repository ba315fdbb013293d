#pragma once
// What Megatron-Core refuses, a reason each: what is wrong with a problem, or nothing. Which of
// them is asked when: rules.cpp.
//
// Sources: Megatron-LM @d98e8a64dd training/arguments.py, core/transformer/transformer_config.py,
// core/parallel_state.py, core/pipeline_parallel/schedules.py.

#include "cost_model/legality/reasons.hpp"

namespace zeroplan::megatron_reasons {

using legality::Reason;

// reasons_pipeline.cpp
Reason enough_layers_to_split(const Problem&);
Reason splittable_as_set(const Problem&);
Reason schedule_of_pipeline_code(const Problem&);
Reason mtp_modules(const Problem&);
Reason interleaved_groups(const Problem&);

// reasons_layers.cpp
Reason kv_heads_or_replicas(const Problem&);
Reason linear_attention_of_release(const Problem&);
Reason linear_heads(const Problem&);
Reason state_space_layers(const Problem&);
Reason state_space_heads(const Problem&);
Reason all_to_all_heads(const Problem&);
Reason whole_context_unfused(const Problem&);
Reason expert_width(const Problem&);
Reason moe_needs_sequence_parallel(const Problem&);
Reason tp_overlap_needs_sequence_parallel(const Problem&);
Reason own_norms_are_whole(const Problem&);
Reason own_attention_is_unfused(const Problem&);
Reason own_layers_have_no_latents(const Problem&);
Reason dispatcher_needs_experts(const Problem&);
Reason expert_overlap(const Problem&);

// reasons_precision.cpp
Reason recipe_of_gpu(const Problem&);
Reason own_linears_are_wide(const Problem&);
Reason eight_bit_attention(const Problem&);
Reason eight_bit_output_layer(const Problem&);
Reason eight_bit_activation_input(const Problem&);
Reason eight_bit_parameters(const Problem&);
Reason ends_in_16_bits(const Problem&);
Reason outer_shards_need_inner(const Problem&);

// reasons_kept.cpp
Reason groups_need_full_recompute(const Problem&);
Reason mtp_modules_run_again_alone(const Problem&);
Reason modules_of_model(const Problem&);
Reason offloaded_layers_alone(const Problem&);
Reason offloaded_modules_of_layers(const Problem&);
Reason expert_overlap_keeps_layers(const Problem&);

// reasons_optimizer.cpp
Reason megatron_optimizer(const Problem&);
Reason distributed_optimizer(const Problem&);
Reason megatron_fsdp_pipeline(const Problem&);
Reason precision_aware_needs_adam(const Problem&);
Reason precision_aware_needs_sharding(const Problem&);
Reason overlap_needs_sharding(const Problem&);
Reason overlap_needs_gradients(const Problem&);

}  // namespace zeroplan::megatron_reasons
