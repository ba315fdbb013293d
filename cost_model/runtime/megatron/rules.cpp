// What does Megatron-Core refuse? Front door: megatron_rules.
#include "cost_model/runtime/megatron/code.hpp"

#include "cost_model/legality/shared_rules.hpp"
#include "cost_model/runtime/megatron/reasons.hpp"

namespace zeroplan {
namespace {

using namespace megatron_reasons;  // NOLINT: the rows below name what is in both
using namespace legality;          // NOLINT
using enum Field;

constexpr Rule rows[] = {
    rules::positions,
    {"M-linear-attention", model, set_of({}), linear_attention_of_release},
    {"M-state-space", model, set_of({}), state_space_layers},
    {"M-optimizer", optimizer, set_of({}), megatron_optimizer},
    rules::number_format,
    {"M-fp8-recipe", precision, set_of({}), recipe_of_gpu},
    {"M-fp8-own-layers", precision, set_of({}), own_linears_are_wide},
    {"M-own-latents", knobs, set_of({}), own_layers_have_no_latents},
    {"M-own-attention", knobs, set_of({}), own_attention_is_unfused},
    {"M-fp8-attention", precision, set_of({}), eight_bit_attention},
    {"M-fp8-output-layer", precision, set_of({}), eight_bit_output_layer},
    {"M-fp8-activation-input", precision, set_of({}), eight_bit_activation_input},
    {"M-dispatcher", ep, set_of({}), dispatcher_needs_experts},
    {"M-mtp", pp, set_of({}), mtp_modules},
    rules::magnitude,
    rules::heads,
    {"M-kv-heads", tp, set_of({tp}), kv_heads_or_replicas},
    rules::hidden_width,
    rules::mlp_width,
    rules::context_halves,
    {"M-context-unfused", cp, set_of({cp}), whole_context_unfused},
    {"M-linear-heads", cp, set_of({tp, cp}), linear_heads},
    {"M-state-space-heads", cp, set_of({tp, cp}), state_space_heads},
    {"M-context-heads", cp, set_of({tp, cp}), all_to_all_heads},
    rules::world,
    rules::batch,
    {"M-ends-in-16-bits", pp, set_of({pp}), ends_in_16_bits},
    rules::experts,
    rules::dense_only,
    rules::expert_grid,
    {"M-expert-width", etp, set_of({etp}), expert_width},
    {"G-layers", pp, set_of({pp, vpp}), enough_layers_to_split},
    {"M-expert-overlap", ep, set_of({pp, ep, vpp}), expert_overlap},
    rules::sequence_parallel_needs_tp,
    rules::sequence_rows,
    {"M-moe-sequence-parallel", sequence_parallel, set_of({tp, sequence_parallel}),
     moe_needs_sequence_parallel},
    {"M-own-norms", sequence_parallel, set_of({sequence_parallel}), own_norms_are_whole},
    {"M-tp-overlap", sequence_parallel, set_of({sequence_parallel}),
     tp_overlap_needs_sequence_parallel},
    {"M-split", pp, set_of({pp, vpp, stage_split}), splittable_as_set},
    {"G-schedule", schedule, set_of({pp, schedule}), schedule_of_pipeline_code},
    rules::schedule_needs_pipeline,
    rules::chunks_fit_schedule,
    {"M-interleaved-batch", global_batch, set_of({micro_batch, tp, cp, pp, schedule}),
     interleaved_groups},
    rules::dualpipe_pairs,
    {"M-offloaded-layers", recompute, set_of({pp, recompute}), offloaded_layers_alone},
    {"M-recompute-groups", recompute, set_of({recompute}), groups_need_full_recompute},
    {"M-mtp-recompute", recompute, set_of({recompute}), mtp_modules_run_again_alone},
    {"M-recompute-modules", recompute_modules, set_of({recompute, recompute_modules}),
     modules_of_model},
    {"M-offloaded-modules", recompute_modules, set_of({recompute, recompute_modules}),
     offloaded_modules_of_layers},
    {"M-expert-overlap-recompute", recompute, set_of({recompute, recompute_modules}),
     expert_overlap_keeps_layers},
    {"M-distributed-optimizer", optimizer, set_of({zero}), distributed_optimizer},
    {"M-fsdp-pipeline", pp, set_of({pp, zero}), megatron_fsdp_pipeline},
    {"M-8-bit-parameters", zero, set_of({zero}), eight_bit_parameters},
    rules::optimizer_offload_only,
    {"M-precision-aware-adam", optimizer, set_of({offload}), precision_aware_needs_adam},
    {"M-precision-aware-stage", zero, set_of({zero, offload}), precision_aware_needs_sharding},
    rules::hybrid_shards,
    rules::hybrid_needs_sharding,
    {"M-outer-shards", hsdp, set_of({tp, cp, pp, zero, hsdp}), outer_shards_need_inner},
    {"M-overlap", knobs, set_of({zero, knobs}), overlap_needs_sharding},
    {"M-overlap-gradients", knobs, set_of({zero, knobs}), overlap_needs_gradients},
};

}  // namespace

constexpr RuleBook megatron_rules(rows);

}  // namespace zeroplan
