#pragma once
// Private to legality: one function a rule, which says why a problem breaks it or says nothing.

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "cost_model/question/problem.hpp"

namespace zeroplan::legality {

using Reason = std::optional<std::string>;

template <class... Args>
Reason because(bool broken, fmt::format_string<Args...> text, Args&&... args) {
  if (!broken) return std::nullopt;
  return fmt::format(text, std::forward<Args>(args)...);
}

inline std::string_view runtime_name(const Problem& p) {
  return name_of(p.runtime.kind);
}

// The grid of ranks.
Reason magnitude(const Problem& p);
Reason world(const Problem& p);
Reason dense_only(const Problem& p);
Reason expert_grid(const Problem& p);
Reason experts_in_shard_group(const Problem& p);
Reason expert_rows_divide(const Problem& p);
Reason no_expert_tensor_parallel(const Problem& p);
Reason hybrid_shards(const Problem& p);
Reason hybrid_needs_sharding(const Problem& p);
Reason no_hybrid(const Problem& p);
Reason secondary_divides(const Problem& p);
Reason data_parallel_only(const Problem& p);
Reason engine_grid(const Problem& p);

// Widths of the model and of the sequence.
Reason heads(const Problem& p);
Reason kv_heads_or_replicas(const Problem& p);
Reason kv_heads(const Problem& p);
Reason mlp_width(const Problem& p);
Reason hidden_width(const Problem& p);
Reason experts(const Problem& p);
Reason expert_width(const Problem& p);
Reason context_halves(const Problem& p);
Reason all_to_all_heads(const Problem& p);
Reason context_heads(const Problem& p);
Reason context_kv_heads(const Problem& p);
Reason sequence_rows(const Problem& p);
Reason sequence_parallel_needs_tp(const Problem& p);
Reason no_sequence_parallel(const Problem& p);
Reason moe_needs_sequence_parallel(const Problem& p);
Reason positions(const Problem& p);

// Stages, schedule and micro-batches.
Reason enough_layers(const Problem& p);
Reason splittable(const Problem& p);
Reason schedule_known(const Problem& p);
Reason chunks_fit_schedule(const Problem& p);
Reason schedule_needs_pipeline(const Problem& p);
Reason dualpipe_pairs(const Problem& p);
Reason no_tied_pipeline(const Problem& p);
Reason batch(const Problem& p);
Reason interleaved_groups(const Problem& p);
Reason torch_micro_batches(const Problem& p);
Reason nanotron_micro_batches(const Problem& p);

// Features that exclude each other.
Reason fsdp_always_shards(const Problem& p);
Reason ddp_never_shards(const Problem& p);
Reason nanotron_stage(const Problem& p);
Reason no_context(const Problem& p);
Reason nanotron_dense(const Problem& p);
Reason deepspeed_pipeline_stage(const Problem& p);
Reason deepspeed_experts_stage(const Problem& p);
Reason deepspeed_accumulation(const Problem& p);
Reason megatron_fsdp_optimizer(const Problem& p);
Reason megatron_optimizer(const Problem& p);
Reason eight_bit_parameters(const Problem& p);
Reason number_format(const Problem& p);
Reason no_fp8(const Problem& p);
Reason no_nvfp4(const Problem& p);
Reason recipe_of_gpu(const Problem& p);
Reason eight_bit_attention(const Problem& p);
Reason offloaded_layers_alone(const Problem& p);
Reason dispatcher_needs_experts(const Problem& p);
Reason expert_overlap(const Problem& p);
Reason full_recompute_only(const Problem& p);
Reason loss_in_parts(const Problem& p);
Reason gathers_what_it_computes(const Problem& p);
Reason offload_known(const Problem& p);
Reason no_offload_in_hybrid(const Problem& p);
Reason overlap_needs_sharding(const Problem& p);
Reason overlap_needs_gradients(const Problem& p);
Reason precision_aware_needs_adam(const Problem& p);
Reason precision_aware_needs_sharding(const Problem& p);
Reason tp_overlap_needs_sequence_parallel(const Problem& p);
Reason groups_need_full_recompute(const Problem& p);
Reason modules_of_model(const Problem& p);
Reason deepspeed_contiguous(const Problem& p);
Reason mtp_modules(const Problem& p);
Reason engine_model(const Problem& p);
Reason engine_precision(const Problem& p);
Reason engine_checkpoints(const Problem& p);
Reason engine_optimizer(const Problem& p);

}  // namespace zeroplan::legality
