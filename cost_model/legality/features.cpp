// Do the features go together in this runtime? Front door: offload_known.
#include <fmt/format.h>

#include "cost_model/kernel/gemm.hpp"
#include "cost_model/legality/reasons.hpp"
#include "cost_model/rank/loss_parts.hpp"
#include "cost_model/rank/recomputed.hpp"

namespace zeroplan::legality {
namespace {

constexpr std::int64_t most_checkpoints = 10'000;

bool pipelined(const Problem& p) {
  return p.layout.pp > 1;
}

bool overlaps_parameters(const Problem& p) {
  return p.runtime.megatron.overlap_param_gather || p.layout.overlap == Overlap::parameters;
}

bool offloads_optimizer(const Problem& p) {
  return p.layout.offload == Offload::optimizer;
}

bool precision_aware(const Problem& p) {
  return p.runtime.megatron.precision_aware() || offloads_optimizer(p);
}

// What asks for it.
std::string_view precision_aware_for(const Problem& p) {
  if (offloads_optimizer(p)) return "offload of the optimizer";
  return p.runtime.megatron.use_precision_aware_optimizer ? "use_precision_aware_optimizer"
                                                          : "a moment below fp32";
}

}  // namespace

Reason fsdp_always_shards(const Problem& p) {
  return because(
      p.layout.zero < ZeroStage::gradients,
      "fsdp2 shards parameters, gradients and optimizer: ZeRO 3, or 2 to keep parameters gathered");
}

Reason nanotron_stage(const Problem& p) {
  return because(p.layout.zero > ZeroStage::optimizer,
                 "nanotron divides the optimizer at most: ZeRO 0 or 1");
}

Reason no_context(const Problem& p) {
  return because(p.layout.cp > 1, "{} has no context parallelism", runtime_name(p));
}

Reason nanotron_dense(const Problem& p) {
  return because(p.model.moe || p.model.attention.mla,
                 "nanotron with experts or latent attention is not modelled by this version");
}

Reason ddp_never_shards(const Problem& p) {
  return because(p.layout.zero != ZeroStage::none, "ddp shards nothing: ZeRO 0");
}

Reason deepspeed_pipeline_stage(const Problem& p) {
  return because(pipelined(p) && p.layout.zero > ZeroStage::optimizer,
                 "DeepSpeed's pipeline reduces gradients once a step, so it refuses ZeRO {}",
                 name_of(p.layout.zero));
}

Reason deepspeed_experts_stage(const Problem& p) {
  return because(p.layout.ep > 1 && p.layout.zero == ZeroStage::parameters,
                 "DeepSpeed's expert parallelism does not work with ZeRO 3");
}

Reason deepspeed_accumulation(const Problem& p) {
  return because(p.runtime.deepspeed.fp32_grad_accumulation && p.layout.zero == ZeroStage::none,
                 "fp32 gradient accumulation needs ZeRO 1 or above in DeepSpeed");
}

// It acts only with partitioned activations; a pipeline's micro-batches share one set of buffers.
Reason deepspeed_contiguous(const Problem& p) {
  const DeepspeedSettings& d = p.runtime.deepspeed;
  if (d.number_checkpoints > most_checkpoints) {
    return fmt::format("number_checkpoints {} is above {}", d.number_checkpoints, most_checkpoints);
  }
  return because(d.contiguous_checkpoints && (!d.partition_activations || pipelined(p)),
                 "contiguous_memory_optimization needs partition_activations, and pp 1");
}

Reason mtp_modules(const Problem& p) {
  constexpr std::int64_t most = 64;
  return because(p.runtime.megatron.mtp_num_layers > most, "mtp_num_layers {} is above {}",
                 p.runtime.megatron.mtp_num_layers, most);
}

Reason megatron_fsdp_optimizer(const Problem& p) {
  const OptimizerKind o = p.training.optimizer;
  return because(
      p.layout.zero > ZeroStage::optimizer && o != OptimizerKind::adam && o != OptimizerKind::sgd,
      "Megatron-FSDP (ZeRO {}) takes adam or sgd, not {}", name_of(p.layout.zero), name_of(o));
}

Reason megatron_optimizer(const Problem& p) {
  return because(p.training.optimizer == OptimizerKind::adam8bit, "Megatron-Core has no adam8bit");
}

// training/arguments.py, core/transformer/transformer_config.py.
Reason eight_bit_parameters(const Problem& p) {
  if (!p.runtime.megatron.fp8_param_gather) return std::nullopt;
  if (p.training.precision != Precision::fp8) return "fp8_param_gather needs precision fp8";
  return because(p.layout.zero == ZeroStage::none,
                 "fp8_param_gather needs the distributed optimizer: ZeRO 1 or above");
}

Reason number_format(const Problem& p) {
  const Precision precision = p.training.precision;
  const GpuSpec& gpu = p.cluster.gpu;
  if (peak_flops(gpu, precision) > 0) return std::nullopt;
  if (precision == Precision::fp32) return fmt::format("no fp32 rate of {} is known", gpu.name);
  return fmt::format("{} has no {} matrix units", gpu.name, name_of(precision));
}

Reason engine_model(const Problem& p) {
  const ModelSpec& m = p.model;
  const bool norms = m.norms_per_layer != 2 || !m.final_norm || m.embedding_norm ||
                     m.parallel_residual || m.attention.qk_norm;
  const auto other = [&]() -> std::string_view {
    if (m.moe) return "experts";
    if (m.attention.mla) return "latent attention";
    if (m.attention.sinks) return "attention sinks";
    if (m.tied_embeddings) return "tied embeddings";
    if (m.embedding_size > 0 && m.embedding_size != m.hidden_size) return "narrow embeddings";
    if (norms) return "norms other than before attention, before the MLP and before the head";
    if (p.training.attention != AttentionKernel::flash) return "attention that stores its scores";
    return "";
  }();
  return because(!other.empty(), "zeroplan's engine has no {}", other);
}

Reason engine_checkpoints(const Problem& p) {
  if (!p.runtime.zeroplan.partition_activations) return std::nullopt;
  if (p.layout.recompute != Recompute::full) {
    return "partition_activations divides checkpoints, which recompute full makes";
  }
  const std::int64_t elements =
      p.training.sequence_length * p.layout.micro_batch * p.model.hidden_size;
  return because(elements % p.layout.tp != 0,
                 "partition_activations: a checkpoint of {} elements is not divisible by tp {}",
                 elements, p.layout.tp);
}

Reason engine_precision(const Problem& p) {
  return because(p.training.precision != Precision::bf16, "zeroplan's engine computes in bf16");
}

Reason engine_optimizer(const Problem& p) {
  return because(p.training.optimizer != OptimizerKind::adam, "zeroplan's engine has Adam alone");
}

Reason no_fp8(const Problem& p) {
  return because(p.training.precision == Precision::fp8, "{} has no fp8 recipe", runtime_name(p));
}

Reason no_nvfp4(const Problem& p) {
  return because(p.training.precision == Precision::nvfp4, "{} has no nvfp4 recipe",
                 runtime_name(p));
}

// TransformerEngine pytorch/quantization.py check_mxfp8_support.
Reason recipe_of_gpu(const Problem& p) {
  constexpr std::int64_t blackwell = 100;
  return because(
      p.training.precision == Precision::fp8 && p.runtime.megatron.fp8_recipe == Fp8Recipe::mxfp8 &&
          p.cluster.gpu.compute_capability < blackwell,
      "{} has no scales of 32 elements, which fp8_recipe mxfp8 needs", p.cluster.gpu.name);
}

Reason eight_bit_attention(const Problem& p) {
  return because(
      p.runtime.megatron.fp8_dot_product_attention && !is_quantized(p.training.precision),
      "fp8_dot_product_attention needs precision fp8 or nvfp4");
}

// core/transformer/transformer_config.py __post_init__.
Reason offloaded_layers_alone(const Problem& p) {
  const std::int64_t layers = p.runtime.megatron.cpu_offloading_num_layers;
  if (layers == 0) return std::nullopt;
  if (layers >= p.model.layers) {
    return fmt::format("cpu_offloading_num_layers {} is not below the model's {} layers", layers,
                       p.model.layers);
  }
  if (p.layout.recompute != Recompute::none) {
    return "cpu_offloading_num_layers goes without recompute";
  }
  return because(p.layout.pp > 1, "cpu_offloading_num_layers goes without a pipeline");
}

Reason dispatcher_needs_experts(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  if (p.model.moe) return std::nullopt;
  if (set.overlap_moe_expert_parallel_comm) {
    return "overlap_moe_expert_parallel_comm needs a model with experts";
  }
  return because(set.moe_token_dispatcher_type == TokenDispatcher::flex,
                 "moe_token_dispatcher_type flex needs a model with experts");
}

// core/transformer/transformer_config.py __post_init__.
Reason expert_overlap(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  if (!set.overlap_moe_expert_parallel_comm) {
    return because(set.delay_wgrad_compute,
                   "delay_wgrad_compute needs overlap_moe_expert_parallel_comm");
  }
  if (p.layout.ep == 1) return "overlap_moe_expert_parallel_comm needs ep above 1";
  return because(p.layout.pp > 1 && p.layout.vpp == 1,
                 "overlap_moe_expert_parallel_comm needs vpp above 1 in a pipeline");
}

Reason full_recompute_only(const Problem& p) {
  return because(p.layout.recompute == Recompute::selective,
                 "{} recomputes whole layers or nothing", runtime_name(p));
}

Reason loss_in_parts(const Problem& p) {
  const Fsdp2Settings& set = p.runtime.fsdp2;
  if (set.loss_chunks > 1 && !has_loss_parts(p)) {
    const std::int64_t date = set.recipe_date;
    return fmt::format(
        "{}'s code of {:04}-{:02}-{:02} computes the loss whole (--set loss_chunks=1)",
        name_of(set.layers), date / 10'000, date / 100 % 100, date % 100);
  }
  const LossParts parts = loss_parts(p);
  const std::int64_t tokens = tokens_in_parts(p);
  return because(parts.of_hidden() && tokens % parts.count != 0,
                 "{} tokens are not divisible into {} parts of the loss (--set loss_chunks)",
                 tokens, parts.count);
}

// FSDP2 has one MixedPrecisionPolicy.param_dtype for what it gathers and what its modules compute
// in: inputs are cast to it too (torch/distributed/fsdp/_fully_shard/_fsdp_state.py @2.10).
Reason gathers_what_it_computes(const Problem& p) {
  constexpr std::int64_t fp32 = 4;
  return because(
      p.runtime.fsdp2.mixed_precision_bytes == fp32 && p.training.precision != Precision::fp32,
      "training.mixed_precision_param=fp32 computes in fp32, not in {}",
      name_of(p.training.precision));
}

Reason overlap_needs_sharding(const Problem& p) {
  return because(overlaps_parameters(p) && p.layout.zero == ZeroStage::none,
                 "overlap of updated parameters needs the distributed optimizer: ZeRO 1 or above");
}

// Megatron-FSDP sets both.
Reason overlap_needs_gradients(const Problem& p) {
  const bool gradients =
      p.runtime.megatron.overlap_grad_reduce || p.layout.overlap != Overlap::as_set;
  return because(overlaps_parameters(p) && !gradients && p.layout.zero <= ZeroStage::optimizer,
                 "overlap_param_gather needs overlap_grad_reduce: --set overlap_grad_reduce=true");
}

// core/optimizer/optimizer_config.py: Transformer Engine's FusedAdam, or the host's.
Reason precision_aware_needs_adam(const Problem& p) {
  return because(precision_aware(p) && p.training.optimizer != OptimizerKind::adam,
                 "{} needs the precision-aware optimizer, which is adam, not {}",
                 precision_aware_for(p), name_of(p.training.optimizer));
}

Reason precision_aware_needs_sharding(const Problem& p) {
  return because(precision_aware(p) && p.layout.zero == ZeroStage::none,
                 "{} needs the precision-aware optimizer, so the distributed one: ZeRO 1 or above",
                 precision_aware_for(p));
}

// `uniform` is also what stands where nobody gave a method.
Reason groups_need_full_recompute(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  const bool given =
      set.recompute_num_layers > 0 || set.recompute_method != RecomputeMethod::uniform;
  return because(given && p.layout.recompute == Recompute::selective,
                 "recompute_method and recompute_num_layers are of full recompute; selective takes "
                 "recompute_modules");
}

Reason modules_of_model(const Problem& p) {
  if (p.layout.recompute != Recompute::selective) return std::nullopt;
  const unsigned modules = p.runtime.megatron.recompute_modules;
  const auto drops = [&](RecomputeModule m) { return (modules & bit_of(m)) != 0; };
  if (drops(RecomputeModule::mla_up_proj) && !p.model.attention.mla) {
    return fmt::format("recompute_modules: {} has no latent attention for mla_up_proj",
                       p.model.name);
  }
  const bool grouped = p.model.moe && p.runtime.megatron.moe_grouped_gemm;
  return because(drops(RecomputeModule::moe_act) && !grouped,
                 "recompute_modules: moe_act needs experts in one grouped GEMM "
                 "(--set moe_grouped_gemm=true)");
}

Reason offload_known(const Problem& p) {
  const Offload asked = p.layout.offload;
  if (asked == Offload::none) return std::nullopt;
  if (asked == Offload::activations) {
    if (p.runtime.kind != Runtime::deepspeed) {
      return fmt::format(
          "{} with offload of activations is not modelled; deepspeed moves "
          "checkpoints to the host",
          runtime_name(p));
    }
    return because(p.layout.recompute != Recompute::full || !runs_megatron_layers(p),
                   "DeepSpeed moves checkpoints to the host: offload of activations needs "
                   "recompute full, and Megatron-DeepSpeed's layers (tp or pp above 1)");
  }
  const bool optimizer = asked == Offload::optimizer;
  switch (p.runtime.kind) {
    case Runtime::deepspeed:
      return because(p.layout.zero < (optimizer ? ZeroStage::optimizer : ZeroStage::parameters),
                     "offload of {} needs ZeRO {} in DeepSpeed", name_of(asked),
                     optimizer ? "1 or above" : "3");
    case Runtime::megatron:
    case Runtime::zero_paper:
      return because(!optimizer, "{} offloads the optimizer only", runtime_name(p));
    case Runtime::fsdp2:
      return because(optimizer,
                     "fsdp2 offloads parameters, gradients and optimizer together: parameters");
    default:
      return fmt::format("{} has no offload", runtime_name(p));
  }
}

// runtime/zero/mics.py.
Reason no_offload_in_hybrid(const Problem& p) {
  return because(p.layout.hsdp > 0 && p.layout.offload != Offload::none,
                 "DeepSpeed's MiCS (hsdp {}) does not offload", p.layout.hsdp);
}

}  // namespace zeroplan::legality
