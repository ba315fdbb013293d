// What is nanotron? Front door: nanotron_code.
#include "cost_model/runtime/nanotron/code.hpp"
#include "cost_model/runtime/measured_bands.hpp"

#include "cost_model/program/fold.hpp"
#include "cost_model/rank/token_shape.hpp"
#include "cost_model/runtime/nanotron/layer.hpp"
#include "cost_model/runtime/nanotron/peak_bytes.hpp"
#include "cost_model/runtime/nanotron/stage.hpp"
#include "cost_model/runtime/usual.hpp"

namespace zeroplan {
namespace {

StateRecipe states(const Problem&) {
  return {.parameter_bytes = 2, .gradient_bytes = 4, .master_bytes = 4};
}

// Each micro-batch's 16-bit gradient is added to the fp32 one (optim/gradient_accumulator.py
// _accumulate_grad). nanotron's layers launch about as many kernels as Megatron-LM's own, from
// which its parallel linears are adapted.
KernelHabits habits(const Problem& p) {
  const std::int64_t sum = token_shape(p).element + 2 * main_gradient_bytes(p);
  return {.layer_sum_bytes = sum,
          .embedding_sum_bytes = sum,
          .spells_out_input_norm = runs_qwen_class(p),
          .launcher = Launcher::local_layers};
}

// trainer.py: PyTorch's DDP, but under ZeRO, which reduces after the last pass.
Behind replicas(const Problem& p, const CollectiveLoad&) {
  return p.layout.zero == ZeroStage::none ? Behind::last_backward : Behind::nothing;
}

unsigned schedules(const RuntimeSpec&) {
  return set_of_schedules({Schedule::gpipe, Schedule::one_f_one_b});
}

// Whether LlamaConfig, or Qwen2Config since 2025-06, can say the model (config/models_config.py).
bool has_class(const Problem& p) {
  const ModelSpec& m = p.model;
  const bool biased = m.attention.output_bias || m.mlp.bias || m.head_bias ||
                      (m.attention.qkv_bias && !runs_qwen_class(p));
  const bool windows = m.attention.sliding_window > 0 && !runs_qwen_class(p);
  return m.norm == Norm::rms && m.norms_per_layer == 2 && m.mlp.gated && !m.attention.qk_norm &&
         m.learned_positions == 0 && query_width(m.attention) == m.hidden_size && !biased &&
         !windows;
}

std::vector<std::string> assumptions(const Problem& p) {
  std::vector<std::string> list;
  if (!has_class(p)) {
    list.push_back(
        "nanotron has no class for this model's layers: they are taken to run as its Llama's do");
  }
  if (logs_attention(p) && p.layout.recompute == Recompute::full) {
    list.push_back(
        "log_attn_probs, on by default, keeps each repeated layer's input and its gradient until "
        "the step ends, so that recompute saves little of several micro-batches (--set "
        "log_attn_probs=false)");
  }
  return list;
}

// The band holds the 16 published runs of nanotron, but for one.
constexpr MeasuredBand bands[] = {{"Hopper", 16, false, 0.32}};

StepBand step_band(const Problem& p) {
  return measured_band(p, bands).value_or(unmeasured_step_band(p));
}

// ZeRO 1 needs less, ZeRO 0 reduces beside the last backward pass.
constexpr ZeroStage stages[] = {ZeroStage::none, ZeroStage::optimizer};
constexpr Choices choices{.divides_model = true,
                          .splits_norms = true,
                          .tries_pipeline = true,
                          .stages = stages,
                          .every_stage = stages,
                          .offloads = no_offloads};

Sources sources(const Problem&) {
  return {"nanotron optim/gradient_accumulator.py, optim/zero.py",
          "nanotron models/llama.py, parallel/tensor_parallel/functional.py",
          "nanotron parallel/tensor_parallel/distributed_differentiable_primitives.py",
          "nanotron parallel/tensor_parallel, parallel/pipeline_parallel, optim/zero.py"};
}

}  // namespace

constexpr RuntimeCode nanotron_code{
    .name = "nanotron",
    .counts_only = false,
    .local_layers = own_layers,
    .transformers_layers = no_classes,
    .split = nanotron_split,
    .has_split = has_chunks<nanotron_split>,
    .most_chunks = one_layer_a_chunk,
    .repeats_selectively = repeats_no_part,
    .repeated_layers = repeats_all_layers,
    .divides_states = DividesStates::by_stage,
    .states = states,
    .keeps_gradients = false,
    .vocabulary_unit = unpadded_vocabulary,
    .held_buffers = no_buffers,
    .workspaces = cublas_alone,
    .context = lazy_context,
    .stage = from_weights<nanotron_stage>,
    .startup = nanotron_startup,
    .allocator = usual_allocator,
    .peak_bytes = make_peak_bytes<NanotronPeakBytes>,
    .step_calls = folded_calls<nanotron_stage>,
    .block = nanotron_block,
    .update_calls = nanotron_update_calls,
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
    .update = nanotron_update,
    .rules = &nanotron_rules,
    .schedules = schedules,
    .choices = choices,
    .layer_choices = no_layer_choices,
    .knobs = no_knobs,
    .attention = flash_attention,
    .take_layout = takes_nothing,
    .assumptions = assumptions,
    .memory_band = unmeasured_band,
    .step_band = step_band,
    .sources = sources,
};

}  // namespace zeroplan
