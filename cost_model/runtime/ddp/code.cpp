// What is DDP? Front door: ddp_code.
#include "cost_model/runtime/ddp/code.hpp"

#include "cost_model/program/fold.hpp"
#include "cost_model/runtime/ddp/stage.hpp"
#include "cost_model/runtime/pytorch_layers/assumptions.hpp"
#include "cost_model/runtime/pytorch_layers/attention_classes.hpp"
#include "cost_model/runtime/pytorch_layers/chain.hpp"
#include "cost_model/runtime/pytorch_layers/split.hpp"
#include "cost_model/runtime/usual.hpp"

namespace zeroplan {
namespace {

StateRecipe states(const Problem&) {
  return {.parameter_bytes = 4, .gradient_bytes = 4};
}

KernelHabits habits(const Problem& p) {
  KernelHabits habits = eager_kernels(p);
  habits.autocast = p.training.precision != Precision::fp32;
  // Grouped products it does not know, batched ones it does (transformers v5.24.0
  // integrations/moe.py _grouped_mm; models/llama4/modeling_llama4.py Llama4TextExperts).
  habits.wide_experts = habits.autocast && p.model.moe && !repeats_tokens(p);
  if (habits.autocast) habits.loss = widened_loss;
  return habits;
}

// torch/csrc/distributed/c10d/reducer.cpp.
Behind replicas(const Problem&, const CollectiveLoad&) {
  return Behind::last_backward;
}

unsigned schedules(const RuntimeSpec&) {
  return every_schedule;  // it has no pipeline to run one in
}

constexpr ZeroStage undivided[] = {ZeroStage::none};
constexpr Choices choices{.stages = undivided, .every_stage = undivided, .offloads = no_offloads};

Sources sources(const Problem& p) {
  return {"pytorch torch/csrc/distributed/c10d/reducer.hpp; torch/amp/autocast_mode.py",
          transformers_source(p), "pytorch torch/csrc/distributed/c10d/reducer.cpp",
          "pytorch torch/csrc/distributed/c10d/reducer.cpp"};
}

}  // namespace

constexpr RuntimeCode ddp_code{
    .name = "ddp",
    .counts_only = false,
    .local_layers = own_layers,
    .transformers_layers = model_classes,
    .split = torchtitan_split,
    .has_split = has_chunks<torchtitan_split>,
    .most_chunks = one_layer_a_chunk,
    .repeats_selectively = repeats_no_part,
    .repeated_layers = repeats_all_layers,
    .divides_states = DividesStates::never,
    .states = states,
    .keeps_gradients = false,
    .vocabulary_unit = unpadded_vocabulary,
    .held_buffers = no_buffers,
    .workspaces = cublas_alone,
    .context = lazy_context,
    .stage = from_weights<ddp_stage>,
    .startup = plain_startup,
    .allocator = usual_allocator,
    .peak_bytes = nullptr,
    .step_calls = folded_calls<ddp_stage>,
    .block = ddp_block,
    .update_calls = ddp_update_calls,
    .sums_blocks = false,
    .peaks_at_start = false,
    .on_host = gradients_on_host,
    .activations_on_host = none_on_host,
    .moved_to_host = nothing_moved,
    .kernels = habits,
    .interleaving = even_rounds,
    .sends_block = sends_blocks_in_one_chunk,
    .replicas_behind = replicas,
    .context_behind = waits,
    .experts_behind = waits,
    .sharding_copies = no_sharding_copies,
    .update = updates_plainly,
    .rules = &ddp_rules,
    .schedules = schedules,
    .choices = choices,
    .layer_choices = no_layer_choices,
    .knobs = no_knobs,
    .attention = attention_of_class,
    .take_layout = takes_nothing,
    .assumptions = transformers_assumptions,
    .memory_band = traced_band,
    .step_band = unmeasured_step_band,
    .sources = sources,
};

}  // namespace zeroplan
