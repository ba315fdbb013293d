// What is DeepSpeed? Front door: deepspeed_code.
#include "cost_model/runtime/deepspeed/code.hpp"

#include "cost_model/kernel/memory_bound.hpp"
#include "cost_model/program/fold.hpp"
#include "cost_model/program/layer_shape.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/runtime/deepspeed/live_parameters.hpp"
#include "cost_model/runtime/deepspeed/megatron_stage.hpp"
#include "cost_model/runtime/deepspeed/plan.hpp"
#include "cost_model/runtime/deepspeed/stage.hpp"
#include "cost_model/runtime/deepspeed/startup.hpp"
#include "cost_model/runtime/measured_bands.hpp"
#include "cost_model/runtime/pytorch_layers/assumptions.hpp"
#include "cost_model/runtime/pytorch_layers/attention_classes.hpp"
#include "cost_model/runtime/replica_calls.hpp"
#include "cost_model/runtime/usual.hpp"

namespace zeroplan {
namespace {

// Megatron-DeepSpeed's tokenizer pads as Megatron-LM's does.
std::int64_t vocabulary_unit(const Problem& p) {
  return runs_megatron_layers(p) ? 128 * p.layout.tp : 1;
}

Bytes context(const Problem& p) {
  // DeepSpeed before 0.7 ran on CUDA before 11.7, which loaded all kernels at once: 1,113 MiB on
  // V100 and 1,573 MiB on A100 (bigscience chronicles @9e64ede).
  constexpr std::int64_t with_lazy_loading = 7;
  if (p.runtime.deepspeed.version >= with_lazy_loading) return lazy_context(p);
  constexpr std::int64_t ampere = 80;
  return p.cluster.gpu.compute_capability >= ampere ? 1573_MiB : 1113_MiB;
}

StageProgram stage(const Problem& p,
                   const WeightInventory& inventory,
                   const Stage& own,
                   const MegatronBlockSource& blocks) {
  if (!runs_megatron_layers(p)) return deepspeed_stage(p, inventory, own);
  const Problem early = with_early_layers(p);
  return megatron_deepspeed_stage(early, inventory, blocks.find_or_make(early), own);
}

std::vector<Call> step_calls(const Problem& p, const WeightInventory& inventory, const Stage& own) {
  if (!runs_megatron_layers(p)) return folded_calls<deepspeed_stage>(p, inventory, own);
  const Problem early = with_early_layers(p);
  return fold_calls(megatron_deepspeed_stage(early, inventory, megatron_blocks(early), own),
                    forward_passes(p));
}

Block block(const Problem& p,
            const WeightInventory& inventory,
            BlockKind kind,
            LayerKind layer,
            RepeatSet repeated) {
  return (runs_megatron_layers(p) ? megatron_deepspeed_block : deepspeed_block)(p, inventory, kind,
                                                                                layer, repeated);
}

std::vector<Call> update_calls(const Problem& p,
                               const WeightInventory& inventory,
                               const Stage& own) {
  return in_step(deepspeed_calls(p, inventory, own, live_parameters(p, inventory)),
                 micro_batches(p));
}

HostTensors on_host(const Problem& p,
                    const WeightInventory& inventory,
                    const Stage& own,
                    std::int64_t updated) {
  const HostBuffers buffers = buffers_on_host(p, tensor_sizes(p, inventory, own));
  const HostTensors gradients = fp32_gradients_on_host(p, inventory, own, updated);
  return {.gradients = gradients.gradients + buffers.accumulated,
          .staging = Bytes{state_recipe(p).parameter_bytes * updated} + buffers.gradient};
}

// ZeRO-R's checkpoints of Megatron-DeepSpeed's layers: one a layer and micro-batch in flight.
Bytes checkpoints(const Problem& p, const Stage& own, std::int64_t index) {
  const bool kept =
      p.layout.recompute == Recompute::full && runs_megatron_layers(p) && checkpoints_on_host(p);
  if (!kept) return {};
  const std::int64_t parts = p.runtime.deepspeed.partition_activations ? p.layout.tp : 1;
  return layer_count(own) * chunks_in_flight(p, index) *
         Bytes{ceil_div(layer_shape(p).residual().count(), parts)};
}

bool transformers_layers(const Problem& p) {
  return !runs_megatron_layers(p);
}

KernelHabits habits(const Problem& p) {
  if (!runs_megatron_layers(p)) return eager_kernels(p);
  return {.fuses_projections = true,
          .local_kernels = true,
          .fuses_softmax = true,
          .launcher = Launcher::local_layers};
}

// Stage 3 flattens 16-bit gradients (4 bytes), takes the norm of an fp64 form (2 + 8 + 8) and
// scales the fp32 one (4 + 4), in passes of 4 bytes; it zeroes none, which is half a pass
// (runtime/zero/stage3.py step, _prepare_fp32_grad_for_sub_group, get_grad_norm_direct,
// unscale_and_clip_grads).
UpdateHabits update(const Problem& p, const WeightInventory&, const Stage&) {
  UpdateHabits habits{.on_host = steps_on_host(p)};
  if (p.layout.zero != ZeroStage::parameters) return habits;
  constexpr std::int64_t flattens = 1, scales = 2, norm_and_nothing_zeroed = 4;
  habits.clip_passes = flattens + norm_and_nothing_zeroed + scales;
  habits.rereads_master = true;
  return habits;
}

// Stage 3 copies what it gathered in one buffer into parameters, and gradients into the bucket,
// from there into the order of the ranks, which it divides (runtime/zero/stage3.py
// __add_grad_to_ipg_bucket; runtime/comm/coalesced_collectives.py reduce_scatter_coalesced;
// partition_parameters.py AllGatherCoalescedHandle).
double sharding_copies(const Problem& p, std::int64_t elements, During during) {
  if (p.layout.zero != ZeroStage::parameters || p.layout.dp * p.layout.cp == 1) return 0;
  const std::int64_t copied = 2 * state_recipe(p).parameter_bytes;
  const auto seconds = [&](std::int64_t bytes) {
    return memory_bound_seconds(Bytes{bytes}, Access::streaming, p.cluster.gpu);
  };
  if (during == During::forward) return seconds(copied * elements);
  constexpr std::int64_t copies = 3;
  const std::int64_t again = live_parameters(p, weight_inventory(p.model)).backward.elements;
  return seconds(copies * copied * elements + copied * again);
}

unsigned schedules(const RuntimeSpec&) {
  return set_of_schedules({Schedule::one_f_one_b});
}

// BigScience's runs, none of which was fitted on.
constexpr MeasuredBand bands[] = {{"Ampere", 16, false, 0.54}, {"Volta", 16, false, 0.54}};

StepBand step_band(const Problem& p) {
  return measured_band(p, bands).value_or(StepBand{0.54, false});
}

constexpr Offload to_host[] = {Offload::optimizer, Offload::none};

constexpr Choices choices{.divides_model = true,
                          .tries_pipeline = true,
                          .has_hybrid_sharding = true,
                          .stages = dividing_stages,
                          .every_stage = every_zero_stage,
                          .offloads = to_host};

Sources sources(const Problem& p) {
  return {"DeepSpeed runtime/bf16_optimizer.py, runtime/zero/stage_1_and_2.py, stage3.py",
          runs_megatron_layers(p)
              ? "Megatron-DeepSpeed megatron/model; DeepSpeed runtime/pipe/engine.py"
              : transformers_source(p),
          "DeepSpeed runtime/zero/stage_1_and_2.py, stage3.py, partitioned_param_coordinator.py",
          "ZeRO (arXiv 1910.02054) section 7; DeepSpeed runtime/zero, runtime/pipe/engine.py"};
}

std::vector<std::string> assumptions(const Problem& p) {
  std::vector<std::string> notes = notes_of_partition(p, p.runtime.deepspeed.partition_activations);
  if (leaves_widening_out(p)) {
    notes.emplace_back(
        "gradients of fp16 that are accumulated in fp32 under stage 1 are counted as 16 bits: "
        "DeepSpeed needs up to 4 bytes a parameter more");
  }
  if (widens_gradients(p) && p.runtime.deepspeed.overlap_comm && micro_batches(p) == 1) {
    notes.emplace_back(
        "gradients that add up in fp32 are counted to the end of the backward pass, though "
        "overlap_comm reduces them before: DeepSpeed needs up to 4 bytes a parameter less");
  }
  for (std::string& own : transformers_assumptions(p)) notes.push_back(std::move(own));
  return notes;
}

}  // namespace

constexpr RuntimeCode deepspeed_code{
    .name = "deepspeed",
    .counts_only = false,
    .local_layers = runs_megatron_layers,
    .transformers_layers = transformers_layers,
    .split = deepspeed_split,
    .has_split = has_chunks<deepspeed_split>,
    .most_chunks = one_layer_a_chunk,
    .repeats_selectively = repeats_no_part,
    .repeated_layers = repeats_all_layers,
    .divides_states = DividesStates::by_stage,
    .states = deepspeed_state_recipe,
    .answered_rank = deepspeed_rank,
    .keeps_gradients = false,
    .vocabulary_unit = vocabulary_unit,
    .held_buffers = no_buffers,
    .workspaces = cublas_alone,
    .context = context,
    .stage = stage,
    .startup = deepspeed_startup,
    .allocator = usual_allocator,
    .peak_bytes = nullptr,
    .step_calls = step_calls,
    .block = block,
    .update_calls = update_calls,
    .sums_blocks = false,
    .peaks_at_start = true,  // modules beside the flat buffer
    .on_host = on_host,
    .activations_on_host = checkpoints,
    .moved_to_host = nothing_moved,
    .kernels = habits,
    .interleaving = even_rounds,
    .sends_block = sends_blocks_in_one_chunk,
    .replicas_behind = deepspeed_replicas,
    .context_behind = waits,
    .experts_behind = waits,
    .sharding_copies = sharding_copies,
    .update = update,
    .rules = &deepspeed_rules,
    .schedules = schedules,
    .choices = choices,
    .layer_choices = no_layer_choices,
    .knobs = deepspeed_knobs,
    .attention = attention_of_class,
    .take_layout = take_deepspeed_layout,
    .assumptions = assumptions,
    .memory_band = unmeasured_band,
    .step_band = step_band,
    .sources = sources,
};

}  // namespace zeroplan
