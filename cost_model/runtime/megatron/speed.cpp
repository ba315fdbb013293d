// Which kernels does Megatron-Core run, and what hides its collectives? Front doors:
// megatron_kernels, megatron_replicas.
#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/pipeline/overlap.hpp"
#include "cost_model/rank/token_shape.hpp"
#include "cost_model/runtime/megatron/code.hpp"
#include "cost_model/runtime/megatron/fsdp_buckets.hpp"
#include "cost_model/runtime/megatron/shape.hpp"
#include "cost_model/states/state_recipe.hpp"

namespace zeroplan {
namespace {

LossTraffic loss(const MegatronSettings& set) {
  // core/tensor_parallel/cross_entropy.py: widen (2+4), maximum (4), subtract, exponential and
  // divide in place (8 each), sum (4); backward scales in place (8) and narrows (4+2).
  if (!set.cross_entropy_loss_fusion) return {38, 14};
  // core/fusions/fused_cross_entropy.py compiled: maximum (2), exponential and sum (2+4), divide
  // (8); backward (4+2).
  if (set.cross_entropy_fusion_impl == CrossEntropy::native) return {16, 6};
  // Transformer Engine: two passes of reading, one of writing the gradient; backward scales it.
  return {6, 4};
}

// Transformer Engine casts and transposes in one kernel, which also looks for the next step's
// largest value; one of this step (tensorwise, nvfp4) needs a kernel before it (common/cast,
// common/recipe). In 4 bits the transposed copy is of what a Hadamard transform makes, by a kernel
// of its own before 2.14 (common/hadamard_transform/row_cast_col_hadamard_transform_cast_fusion.cu,
// 523801df7).
double cast_bytes(const Problem& p) {
  constexpr double read = 2;
  const Fp8Recipe recipe = p.runtime.megatron.fp8_recipe;
  const bool nvfp4 = p.training.precision == Precision::nvfp4;
  constexpr std::int64_t fused_transform = 214;
  const bool apart = nvfp4 && p.runtime.megatron.transformer_engine_version < fused_transform;
  const double looked = (nvfp4 || recipe == Fp8Recipe::tensorwise ? read : 0) + (apart ? read : 0);
  constexpr std::int64_t many = 1 << 20;
  const double written = static_cast<double>(quantized_bytes(p, many).count()) / many;
  return looked + read + static_cast<double>(copies_of_matrix(p)) * written;
}

}  // namespace

// Where YaRN scales what is rotated, Transformer Engine's fused rotation is not used
// (core/models/common/embeddings/rope_utils.py apply_rotary_pos_emb); latent attention has a kernel
// of its own. Bounds are applied before the fused activation (core/fusions/
// fused_bias_geglu.py weighted_bias_quick_geglu_impl), whose offset is made on the host each time:
// PyTorch waits for the GPU before it copies such a tensor (aten/src/ATen/native/cuda/Copy.cu).
// Fused accumulation adds to the main gradient inside the product; without it each micro-batch's
// 16-bit gradient is added by a kernel of its own, as the embedding's always is.
KernelHabits megatron_kernels(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  const bool local = set.local_layers();
  const bool fused = set.gradient_accumulation_fusion;
  const std::int64_t sum = token_shape(p).element + 2 * reduced_gradient_bytes(p);
  const bool engine = set.attention_backend == AttentionLibrary::fused;
  const bool clamps = p.model.moe && p.model.moe->clamped;
  const bool launches = !set.use_transformer_engine_op_fuser && !set.captures(GraphScope::moe);
  return {.fuses_projections = true,
          .weight_gradient_bytes = fused ? 2 * reduced_gradient_bytes(p) : 0,
          .layer_sum_bytes = fused ? 0 : sum,
          .embedding_sum_bytes = sum,
          .local_kernels = local,
          .fuses_permutation = set.moe_permute_fusion,
          .weights_expert_biases = weights_expert_biases(p),
          .clamps_apart = clamps,
          .launches_experts = launches && !local && !set.moe_pad_to_capacity,
          .awaits_experts = clamps && launches,
          .spells_out_rotation = p.model.attention.yarn && !p.model.attention.mla,
          .exchanges_heads = p.layout.cp > 1 && set.cp_comm_type == ContextTransport::a2a,
          .attends_by_ring = p.layout.cp > 1 && set.cp_comm_type == ContextTransport::p2p,
          .fuses_softmax = set.masked_softmax_fusion,
          .casts = {.input = cast_bytes(p), .gradient = cast_bytes(p)},
          // cuDNN's kernel. The flash-attn package is FlashAttention-2 unless someone built its
          // Hopper branch.
          .flash = engine ? FlashKernel::newest : FlashKernel::flash2,
          .skips_outside_window = !local,
          .loss = loss(set),
          .launcher = local ? Launcher::local_layers : Launcher::transformer_engine};
}

// core/distributed/distributed_data_parallel.py: by default all after the last backward pass.
// Megatron-FSDP's travel during the passes, and what its replicas have updated during the first, a
// layer ahead.
Behind megatron_replicas(const Problem& p, const CollectiveLoad& load) {
  const MegatronSettings& set = p.runtime.megatron;
  if (load.during != During::step) return Behind::pass;
  if (load.collective == Collective::all_gather) {
    const bool travels =
        is_megatron_fsdp(p) ? load.group.name == "replica" : set.overlap_param_gather;
    return travels ? Behind::first_forward : Behind::nothing;
  }
  return set.overlap_grad_reduce ? Behind::last_backward : Behind::nothing;
}

// core/models/common/model_chunk_schedule_plan.py; DualPipe pairs a forward and a backward pass
// (deepseek-ai/DualPipe @bb214e8 dualpipe/dualpipe.py _forward_backward_chunk, where the model's
// overlapped_forward_backward interleaves the two; DeepSeek-V3 report, section 3.2.1).
Behind megatron_experts(const Problem& p, const CollectiveLoad&) {
  const MegatronSettings& set = p.runtime.megatron;
  const bool paired = set.pipeline_code == PipelineCode::dualpipe;
  return paired || set.overlap_moe_expert_parallel_comm ? Behind::other_pass : Behind::nothing;
}

// Transformer Engine's ring sends keys and values on a stream of their own
// (pytorch/attention/dot_product_attention/context_parallel.py); the other transports wait.
Behind megatron_context(const Problem& p, const CollectiveLoad& load) {
  const bool ring = p.runtime.megatron.cp_comm_type == ContextTransport::p2p &&
                    load.collective == Collective::send_recv;
  return ring ? Behind::attention : Behind::nothing;
}

}  // namespace zeroplan
