// What is FSDP2? Front door: fsdp2_code.
#include "cost_model/runtime/fsdp2/code.hpp"

#include <fmt/format.h>

#include "cost_model/kernel/memory_bound.hpp"
#include "cost_model/program/fold.hpp"
#include "cost_model/runtime/fsdp2/float8.hpp"
#include "cost_model/runtime/fsdp2/peak_bytes.hpp"
#include "cost_model/runtime/fsdp2/recipe.hpp"
#include "cost_model/runtime/fsdp2/stage.hpp"
#include "cost_model/runtime/measured_bands.hpp"
#include "cost_model/runtime/pytorch_layers/assumptions.hpp"
#include "cost_model/runtime/pytorch_layers/attention_classes.hpp"
#include "cost_model/runtime/pytorch_layers/split.hpp"
#include "cost_model/runtime/usual.hpp"
#include "cost_model/states/fsdp2_wrapping.hpp"

namespace zeroplan {
namespace {

AllocatorConfig segments(const Problem& p) {
  return {.expandable_segments = fsdp2_recipe(p).expandable_segments};
}

// FlashAttention-2 is what PyTorch's scaled_dot_product_attention prefers
// (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp). torchtitan puts cuDNN's kernels before it
// (6a3a9da95; models/attention.py ScaledDotProductAttentionWrapper; on Blackwell before, 3b85aa31f)
// until its language models take FlexAttention (169545712), whose kernels are taken to be as fast
// as FlashAttention-2's.
FlashKernel flash_kernel(const Problem& p) {
  constexpr std::int64_t blackwell = 100;  // compute capability
  const std::int64_t cudnn_first =
      p.cluster.gpu.compute_capability >= blackwell ? 20250514 : 20251009;
  constexpr std::int64_t flex_attention = 20260609;
  const Fsdp2Settings& set = p.runtime.fsdp2;
  if (set.flash_attention == 1) return FlashKernel::flash1;
  const bool cudnn = set.layers == LayerCode::torchtitan && set.recipe_date >= cudnn_first &&
                     set.recipe_date < flex_attention;
  return cudnn ? FlashKernel::newest : FlashKernel::flash2;
}

bool transformers_layers(const Problem& p) {
  return p.runtime.fsdp2.layers == LayerCode::huggingface;
}

AttentionKernel attention(const Problem& p) {
  return transformers_layers(p) ? attention_of_class(p) : AttentionKernel::flash;
}

KernelHabits habits(const Problem& p) {
  const Fsdp2Settings& set = p.runtime.fsdp2;
  const bool spelt = transformers_layers(p);
  const bool masks = p.runtime.attn_implementation == AttnImplementation::sdpa;
  return {.eager = !set.compiles_layers() && !spelt,
          .spells_out_layers = !set.compiles_layers() && spelt,
          .casts = torchao_casts(p),
          .casts_parts = gathers_eight_bit(p),
          .forward_rate = torchao_forward_rate(p),
          .wide_weight_gradients = float8_recipe(p) == Float8Recipe::rowwise_with_gw_hp,
          .orders_ranks = joins_ranks(p),
          .parts_slowdown = &StepConstants::copied_parts_slowdown,
          .flash = flash_kernel(p),
          .skips_outside_window = spelt && !masks,
          .masks_windows = spelt && masks};
}

// torch/distributed/pipelining/schedules.py sends while it computes.
bool exchange_waits(const Problem&) {
  return false;
}

// torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py: prefetch on streams of their own. A
// pipeline gathers before its first pass and reduces after the last.
Behind replicas(const Problem&, const CollectiveLoad& load) {
  return load.during == During::step ? Behind::nothing : Behind::pass;
}

// How many elements the backward pass gathers again: layers that stay gathered as if each had an
// equal part of all.
std::int64_t resharded(const Problem& p, std::int64_t elements) {
  if (p.layout.zero != ZeroStage::parameters) return 0;
  const std::int64_t kept = p.runtime.fsdp2.no_reshard_layers;
  return kept == 0 ? elements : elements - elements / p.model.layers * kept;
}

// FSDP2 copies what it gathered into the parameters, and their gradients, widened, into the order
// of the ranks before it reduces them (torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py
// foreach_all_gather_copy_out, foreach_reduce). FSDP1 copies about as much: gradients of views into
// their flat parameter, then widened, then divided (_runtime_utils.py). A pipeline does so once a
// step, which is not counted.
double sharding_copies(const Problem& p, std::int64_t elements, During during) {
  const Layout& l = p.layout;
  if (l.dp * l.cp == 1 || l.pp > 1) return 0;
  const std::int64_t gathered = p.runtime.fsdp2.mixed_precision_bytes;
  const std::int64_t reduced = reduced_bytes(p);
  const std::int64_t copied = during == During::forward ? elements : resharded(p, elements);
  const std::int64_t cut = during == During::backward ? elements : 0;
  return memory_bound_seconds(Bytes{2 * gathered * copied + (gathered + reduced) * cut},
                              Access::streaming, p.cluster.gpu);
}

unsigned schedules(const RuntimeSpec&) {
  using enum Schedule;
  return set_of_schedules({gpipe, one_f_one_b, interleaved, zb_v});
}

// torchtitan's published runs, and llm-foundry's by FSDP's first form.
constexpr MeasuredBand bands[] = {
    {"Ampere", 16, false, 0.16}, {"Hopper", 16, false, 0.19}, {"Hopper", 8, false, 0.15}};

StepBand step_band(const Problem& p) {
  if (keeps_states(p.model)) return unmeasured_step_band(p);
  return measured_band(p, bands).value_or(unmeasured_step_band(p));
}

constexpr ZeroStage stages[] = {ZeroStage::gradients, ZeroStage::parameters};

// Under a pipeline it keeps parameters and gradients whole.
constexpr Choices choices{.divides_model = true,
                          .splits_norms = true,
                          .cuts_context = true,
                          .divides_experts = true,
                          .has_several_chunks = true,
                          .has_hybrid_sharding = true,
                          .selective = SelectiveRecompute::always,
                          .stages = stages,
                          .every_stage = stages,
                          .offloads = no_offloads};

std::vector<std::string> assumptions(const Problem& p) {
  const Fsdp2Settings& set = p.runtime.fsdp2;
  std::vector<std::string> list;
  const auto version = [](std::int64_t of) { return fmt::format("{}.{}", of / 100, of % 100); };
  if (set.layers == LayerCode::torchtitan) {
    list.push_back(
        fmt::format("torchtitan's layers as of {:04}-{:02}-{:02}, PyTorch {} (--set recipe_date, "
                    "torch_version)",
                    set.recipe_date / 10'000, set.recipe_date / 100 % 100, set.recipe_date % 100,
                    version(torch_version(set))));
  } else {
    list.push_back(
        fmt::format("Transformers {}'s layers, wrapped by accelerate {} and PyTorch {} (--set "
                    "transformers_version, accelerate_version, torch_version)",
                    version(set.transformers_version), version(set.accelerate_version),
                    version(torch_version(set))));
    list.push_back(fmt::format("its loop has {} the logits in the backward pass (--set logits)",
                               name_of(set.logits)));
    if (defers_reduction(p)) {
      list.push_back("whole gradients of all but the last micro-batch (--set sync_each_batch)");
    }
  }
  if (p.training.precision == Precision::fp8) {
    list.push_back(fmt::format("8-bit linears by the recipe {} (--set float8.recipe_name)",
                               name_of(float8_recipe(p))));
  }
  if (set.recompute_num_layers > 0 || set.no_reshard_layers > 0) {
    list.push_back(fmt::format(
        "a loop of your own wraps layers one by one; {} treats all alike",
        set.layers == LayerCode::torchtitan ? "torchtitan's configuration" : "accelerate's"));
  }
  constexpr std::int64_t one_rank_shards = 20260409;  // torchtitan 00b7f5693
  if (set.layers == LayerCode::torchtitan && set.recipe_date < one_rank_shards &&
      p.layout.dp * p.layout.cp == 1 && p.layout.tp * p.layout.pp > 1) {
    list.push_back(
        "sharded over one rank, where torchtitan of that day computed unsharded in fp32");
  }
  if (fsdp2_recipe(p).keeps_gradients) {
    list.push_back(
        "steps are CUDA graphs, which keep gradients alive (--set training.disable_cuda_graphs)");
  }
  for (std::string& own : transformers_assumptions(p)) list.push_back(std::move(own));
  return list;
}

Sources sources(const Problem& p) {
  if (transformers_layers(p)) {
    return {"accelerate utils/fsdp_utils.py; pytorch torch/distributed/fsdp/_fully_shard",
            transformers_source(p),
            "pytorch torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, _fsdp_param.py",
            "pytorch torch/distributed/fsdp/_fully_shard"};
  }
  return {"torchtitan distributed/fsdp.py; pytorch torch/distributed/fsdp/_fully_shard",
          "torchtitan models/llama3/model.py, distributed/activation_checkpoint.py, "
          "components/loss.py",
          "pytorch torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py, _fsdp_param.py; "
          "torch/distributed/pipelining/stage.py",
          "pytorch torch/distributed/fsdp/_fully_shard; torchtitan distributed/parallel_dims.py"};
}

}  // namespace

constexpr RuntimeCode fsdp2_code{
    .name = "fsdp2",
    .counts_only = false,
    .local_layers = own_layers,
    .transformers_layers = transformers_layers,
    .split = torchtitan_split,
    .has_split = has_chunks<torchtitan_split>,
    .most_chunks = one_layer_a_chunk,
    .repeats_selectively = fsdp2_repeats,
    .repeated_layers = fsdp2_repeated_layers,
    // Stage 2 only skips the second gather of the parameters.
    .divides_states = DividesStates::always,
    .states = fsdp2_state_recipe,
    .keeps_gradients = false,
    .vocabulary_unit = unpadded_vocabulary,
    .held_buffers = no_buffers,
    .workspaces = cublas_alone,
    .context = lazy_context,
    .stage = from_weights<fsdp2_stage>,
    .startup = fsdp2_startup,
    .allocator = segments,
    .peak_bytes = make_peak_bytes<Fsdp2PeakBytes>,
    .step_calls = folded_calls<fsdp2_stage>,
    .block = fsdp2_block,
    .update_calls = nullptr,
    .sums_blocks = false,
    .peaks_at_start = false,
    .on_host = gradients_on_host,
    .activations_on_host = none_on_host,
    .moved_to_host = nothing_moved,
    .kernels = habits,
    .interleaving = even_rounds,
    .sends_block = exchange_waits,
    .replicas_behind = replicas,
    .context_behind = waits,
    .experts_behind = waits,
    .sharding_copies = sharding_copies,
    .update = updates_plainly,
    .rules = &fsdp2_rules,
    .schedules = schedules,
    .choices = choices,
    .layer_choices = fsdp2_layer_choices,
    .knobs = fsdp2_knobs,
    .attention = attention,
    .take_layout = take_fsdp2_layout,
    .assumptions = assumptions,
    // Twice the root mean square error over the 33 torchtitan rows of script/accuracy.
    // Communicators and context are estimates.
    .memory_band = traced_band,
    .step_band = step_band,
    .sources = sources,
};

}  // namespace zeroplan
