// What is Megatron-Core? Front door: megatron_code.
#include "cost_model/runtime/megatron/code.hpp"

#include "cost_model/program/fold.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/runtime/megatron/chunk_groups.hpp"
#include "cost_model/runtime/megatron/layer.hpp"
#include "cost_model/runtime/megatron/offload.hpp"
#include "cost_model/runtime/megatron/stage.hpp"
#include "cost_model/runtime/usual.hpp"

namespace zeroplan {
namespace {

bool local_layers(const Problem& p) {
  return p.runtime.megatron.local_layers();
}

std::int64_t vocabulary_unit(const Problem& p) {
  return p.runtime.megatron.make_vocab_size_divisible_by * p.layout.tp;
}

StageProgram stage(const Problem& p,
                   const WeightInventory& inventory,
                   const Stage& own,
                   const MegatronBlockSource& blocks) {
  return megatron_stage(p, inventory, blocks.find_or_make(p), own);
}

std::vector<Call> step_calls(const Problem& p, const WeightInventory& inventory, const Stage& own) {
  std::vector<Call> calls =
      fold_calls(megatron_chunks(p, megatron_blocks(p), own), forward_passes(p));
  for (const Call& call : megatron_update_calls(p, inventory, own)) add(calls, call);
  return calls;
}

AllocatorConfig segments(const Problem& p) {
  return {.expandable_segments = p.runtime.megatron.expandable_segments};
}

// A pass more is ahead where forward and backward passes run as one
// (core/pipeline_parallel/schedules.py get_pp_rank_microbatches).
Interleaving interleaving(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  const std::int64_t group = set.microbatch_group_size_per_vp_stage;
  return {.group = group > 0 ? group : p.layout.pp,
          .ahead = set.overlap_moe_expert_parallel_comm ? 1 : 0};
}

// core/pipeline_parallel/schedules.py send_forward_recv_backward. Interleaved schedules send while
// they compute since there is overlap_p2p_comm.
bool exchange_waits(const Problem& p) {
  const bool waits_for_chunks = p.layout.schedule == Schedule::interleaved && local_layers(p);
  return p.layout.schedule <= Schedule::one_f_one_b || waits_for_chunks;
}

unsigned schedules(const RuntimeSpec& runtime) {
  using enum Schedule;
  switch (runtime.megatron.pipeline_code) {
    case PipelineCode::megatron:
      return set_of_schedules({one_f_one_b, interleaved});
    case PipelineCode::zero_bubble:
      return set_of_schedules({one_f_one_b, interleaved, zb_h1, zb_h2, zb_v});
    case PipelineCode::dualpipe:
      return set_of_schedules({dualpipe});
  }
  return 0;
}

// What layers save, of one micro-batch: there is no pipeline beside it. Of modules, of all
// micro-batches in flight.
Bytes saved_by_layers(const Problem& p, const Stage& stage, std::int64_t index) {
  Bytes sum;
  for (const LayerKind kind : all_layer_kinds) {
    const std::int64_t count = layers_of_kind(p.model, 0, offloaded_layers(p), kind);
    if (count > 0) sum += count * saved_bytes(megatron_layer(p, kind));
  }
  if (p.runtime.megatron.offload_modules == 0) return sum;
  Bytes most;
  for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
    most = std::max(most, moved_by_chunk(p, stage, i));
  }
  return sum + chunks_in_flight(p, index) * most;
}

// A layer that is not among the last; of whole layers, as if each moved its part.
Bytes moved_by_layer(const Problem& p, LayerKind kind) {
  if (p.runtime.megatron.offload_modules != 0) return moved_by_groups(p, {.kind = kind});
  const std::int64_t count = offloaded_layers(p);
  if (count == 0) return {};
  return Bytes{saved_bytes(megatron_layer(p, kind)).count() * count / p.model.layers};
}

// Megatron-FSDP runs no pipeline.
constexpr std::array without_fsdp{ZeroStage::none, ZeroStage::optimizer};

// ZeRO 1 costs nothing over stage 0. With a fused attention kernel selective recompute has nothing
// to drop but by module.
constexpr Choices choices{.divides_model = true,
                          .splits_norms = true,
                          .cuts_products = true,
                          .cuts_context = true,
                          .divides_experts = true,
                          .divides_inside_experts = true,
                          .tries_pipeline = true,
                          .has_several_chunks = true,
                          .has_uneven_splits = true,
                          .has_recompute_modules = true,
                          .has_hybrid_sharding = true,
                          .trains_mtp = true,
                          .selective = SelectiveRecompute::with_unfused_attention,
                          .stages = optimizer_stage,
                          .every_stage = every_zero_stage,
                          .pipeline_stages = without_fsdp,
                          .offloads = no_offloads};

// Megatron's own layers store their scores, where nobody asks for the legacy models' flash-attn
// (megatron/training/arguments.py use_flash_attn is off by default).
AttentionKernel attention(const Problem& p) {
  return p.runtime.megatron.local_layers() ? AttentionKernel::unfused : AttentionKernel::flash;
}

std::string_view layers_source(const Problem& p) {
  if (p.runtime.megatron.local_layers()) {
    return "Megatron-LM core/tensor_parallel/layers.py, core/transformer; Korthikanti et al. 2022, "
           "section 4";
  }
  if (p.model.state_space) {
    return "TransformerEngine pytorch/module and attention; Megatron-LM core/models/hybrid, "
           "core/ssm/mamba_mixer.py, core/pipeline_parallel/schedules.py; state-spaces/mamba "
           "mamba_ssm/ops/triton/ssd_combined.py";
  }
  if (p.model.linear_attention) {
    return "TransformerEngine pytorch/module and attention; Megatron-LM core/transformer, "
           "core/ssm/gated_delta_net, core/pipeline_parallel/schedules.py; flash-linear-attention "
           "fla/ops/gated_delta_rule/chunk.py";
  }
  return "TransformerEngine pytorch/module and attention; Megatron-LM core/transformer, "
         "core/pipeline_parallel/schedules.py; Korthikanti et al. 2022, section 4";
}

Sources sources(const Problem& p) {
  const bool sharded = p.layout.zero >= ZeroStage::gradients;
  return {sharded ? "Megatron-LM core/distributed/fsdp/src (Megatron-FSDP)"
                  : "Megatron-LM docs/user-guide/features/dist_optimizer.md; "
                    "core/distributed/param_and_grad_buffer.py; core/optimizer/param_layout.py",
          layers_source(p),
          "Megatron-LM core/distributed/fsdp/src; core/pipeline_parallel/p2p_communication.py",
          "Megatron-LM core/tensor_parallel/mappings.py, core/distributed; Narayanan et al. 2021, "
          "section 3.2; Korthikanti et al. 2022, section 4.2.2"};
}

}  // namespace

constexpr RuntimeCode megatron_code{
    .name = "megatron",
    .counts_only = false,
    .local_layers = local_layers,
    .transformers_layers = no_classes,
    .split = megatron_split,
    .has_split = has_megatron_split,
    .most_chunks = most_megatron_chunks,
    .repeats_selectively = megatron_repeats,
    .repeated_layers = megatron_repeated_layers,
    .divides_states = DividesStates::by_stage,
    .states = megatron_state_recipe,
    .keeps_gradients = true,
    .vocabulary_unit = vocabulary_unit,
    .held_buffers = megatron_held_buffers,
    .workspaces = megatron_workspaces,
    .context = lazy_context,
    .stage = stage,
    .startup = megatron_startup,
    .allocator = segments,
    .peak_bytes = nullptr,
    .step_calls = step_calls,
    .block = megatron_block,
    .update_calls = megatron_update_calls,
    .sums_blocks = true,
    .peaks_at_start = false,  // megatron_construction is among its sums
    .on_host = fp32_gradients_on_host,
    .activations_on_host = saved_by_layers,
    .moved_to_host = moved_by_layer,
    .kernels = megatron_kernels,
    .interleaving = interleaving,
    .sends_block = exchange_waits,
    .replicas_behind = megatron_replicas,
    .context_behind = megatron_context,
    .experts_behind = megatron_experts,
    .sharding_copies = no_sharding_copies,
    .update = updates_plainly,
    .rules = &megatron_rules,
    .schedules = schedules,
    .choices = choices,
    .layer_choices = megatron_layer_choices,
    .knobs = megatron_knobs,
    .attention = attention,
    .take_layout = take_megatron_layout,
    .assumptions = megatron_assumptions,
    // By which ranks of one stage differ in published B200 runs (MooreThreads/SimuMax docs/b200
    // @4dcaae5). Communicators and context are estimates.
    .memory_band = MemoryBand{.reserved = 0.026, .outside = 0.5},
    .step_band = megatron_step_band,
    .sources = sources,
};

}  // namespace zeroplan
