// What does Megatron-Core refuse? Front door: megatron_rules.
//
// Sources: Megatron-LM @d98e8a64dd training/arguments.py, core/transformer/transformer_config.py,
// core/parallel_state.py, core/pipeline_parallel/schedules.py.
#include "cost_model/runtime/megatron/code.hpp"

#include <algorithm>
#include <numeric>

#include "cost_model/legality/shared_rules.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/schedule/pipeline.hpp"

namespace zeroplan {
namespace {

using namespace legality;  // NOLINT: the rows below name what is in it
using enum Field;

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

// Of a layout that is given as a whole.
Reason broken_layout(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  const PipelineLayout& layout = set.pipeline_model_parallel_layout;
  const std::int64_t layers =
      std::accumulate(layout.layers.begin(), layout.layers.end(), std::int64_t{0});
  if (std::ssize(layout.layers) != p.layout.pp * p.layout.vpp) {
    return fmt::format("pipeline_model_parallel_layout has {} chunks, not pp {} x vpp {}",
                       layout.layers.size(), p.layout.pp, p.layout.vpp);
  }
  if (layers != p.model.layers) {
    return fmt::format("pipeline_model_parallel_layout places {} layers, not {}", layers,
                       p.model.layers);
  }
  if (layout.mtp_modules != set.mtp_num_layers) {
    return fmt::format(
        "pipeline_model_parallel_layout places {} modules where mtp_num_layers is {}",
        layout.mtp_modules, set.mtp_num_layers);
  }
  return because(set.pipeline_code != PipelineCode::megatron,
                 "pipeline_model_parallel_layout is Megatron-Core's own, not of pipeline_code {}",
                 name_of(set.pipeline_code));
}

// Megatron-Core takes one way to say it (core/transformer/transformer_config.py).
Reason several_splits(const MegatronSettings& set) {
  const bool counts_ends =
      set.account_for_embedding_in_pipeline_split || set.account_for_loss_in_pipeline_split;
  const bool own_ends =
      set.decoder_first_pipeline_num_layers > 0 || set.decoder_last_pipeline_num_layers > 0;
  const bool whole = set.pipeline_model_parallel_layout.given();
  return because(counts_ends + own_ends + whole > 1,
                 "account_for_*_in_pipeline_split, decoder_*_pipeline_num_layers and "
                 "pipeline_model_parallel_layout exclude each other");
}

// A layout that is given has as many chunks as it has: whether they are the right ones is the
// split's question.
Reason enough_layers_to_split(const Problem& p) {
  if (p.runtime.megatron.pipeline_model_parallel_layout.given()) return std::nullopt;
  return enough_layers(p);
}

Reason splittable_as_set(const Problem& p) {
  if (Reason several = several_splits(p.runtime.megatron)) return several;
  if (p.runtime.megatron.pipeline_model_parallel_layout.given()) return broken_layout(p);
  return splittable(p);
}

Reason schedule_of_pipeline_code(const Problem& p) {
  Reason reason = schedule_known(p);
  if (reason) *reason += ", and others by --set pipeline_code=zero-bubble|dualpipe";
  return reason;
}

Reason megatron_optimizer(const Problem& p) {
  return because(p.training.optimizer == OptimizerKind::adam8bit, "Megatron-Core has no adam8bit");
}

Reason mtp_modules(const Problem& p) {
  constexpr std::int64_t most = 64;
  return because(p.runtime.megatron.mtp_num_layers > most, "mtp_num_layers {} is above {}",
                 p.runtime.megatron.mtp_num_layers, most);
}

Reason kv_heads_or_replicas(const Problem& p) {
  const std::int64_t kv = p.model.attention.kv_heads;
  return because(kv % p.layout.tp != 0 && p.layout.tp % kv != 0,
                 "{} key-value heads and tp {}: neither divides the other", kv, p.layout.tp);
}

// Transformer Engine attention/dot_product_attention/context_parallel.py: each rank of the exchange
// takes its part of the heads that the tensor rank has, of which Megatron leaves at least one.
Reason all_to_all_heads(const Problem& p) {
  const std::int64_t cp = p.layout.cp;
  if (cp == 1 || p.runtime.megatron.cp_comm_type != ContextTransport::a2a) return std::nullopt;
  const std::int64_t queries = p.model.attention.heads / p.layout.tp;
  const std::int64_t keys = std::max<std::int64_t>(1, key_heads(p) / p.layout.tp);
  return because(queries % cp != 0 || keys % cp != 0,
                 "cp {} by all-to-all must divide the {} query and {} key-value heads of a rank; "
                 "--set cp_comm_type=p2p does without",
                 cp, queries, keys);
}

// Transformer Engine attention/dot_product_attention/utils.py get_attention_backend, and
// core/transformer/dot_product_attention.py of Megatron's own layers.
Reason whole_context_unfused(const Problem& p) {
  return because(p.layout.cp > 1 && p.training.attention == AttentionKernel::unfused,
                 "Megatron-Core has no unfused attention with context parallelism (--cp {}): "
                 "--attention flash",
                 p.layout.cp);
}

Reason expert_width(const Problem& p) {
  return because(p.model.moe && p.model.moe->intermediate_size % p.layout.etp != 0,
                 "expert width {} is not a multiple of etp {}",
                 p.model.moe ? p.model.moe->intermediate_size : 0, p.layout.etp);
}

Reason moe_needs_sequence_parallel(const Problem& p) {
  return because(p.model.moe && p.layout.tp > 1 && !p.layout.sequence_parallel,
                 "MoE layers with tp {} need sequence parallelism", p.layout.tp);
}

Reason tp_overlap_needs_sequence_parallel(const Problem& p) {
  return because(p.runtime.megatron.tp_comm_overlap && !p.layout.sequence_parallel,
                 "tp_comm_overlap needs sequence parallelism, so tp above 1, or "
                 "--set tp_comm_overlap=false");
}

// Groups are at least as long as the pipeline, and so is a last, shorter one.
Reason interleaved_groups(const Problem& p) {
  if (p.layout.schedule != Schedule::interleaved) return std::nullopt;
  const std::int64_t m = micro_batches(p);
  const std::int64_t pp = p.layout.pp;
  const std::int64_t group = pipeline_of(p, m).group;
  if (group == pp) {
    return because(m == 0 || m % pp != 0,
                   "{} micro-batches are not a multiple of pp {}, as interleaving needs", m, pp);
  }
  const bool rest_too_short = m % group != 0 && m % group < pp;
  return because(group < pp || group > m || rest_too_short,
                 "{} micro-batches in groups of {} leave a group shorter than pp {}", m, group, pp);
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

Reason megatron_fsdp_optimizer(const Problem& p) {
  const OptimizerKind o = p.training.optimizer;
  return because(
      p.layout.zero > ZeroStage::optimizer && o != OptimizerKind::adam && o != OptimizerKind::sgd,
      "Megatron-FSDP (ZeRO {}) takes adam or sgd, not {}", name_of(p.layout.zero), name_of(o));
}

// training/arguments.py, core/transformer/transformer_config.py.
Reason eight_bit_parameters(const Problem& p) {
  if (!p.runtime.megatron.fp8_param_gather) return std::nullopt;
  if (p.training.precision != Precision::fp8) return "fp8_param_gather needs precision fp8";
  return because(p.layout.zero == ZeroStage::none,
                 "fp8_param_gather needs the distributed optimizer: ZeRO 1 or above");
}

// core/transformer/torch_norm.py WrappedTorchNorm, which own layers have for an RMSNorm since
// 693ae8681e (release 0.10); before there was none.
Reason own_norms_are_whole(const Problem& p) {
  constexpr std::int64_t first_with_rms = 10;
  const MegatronSettings& set = p.runtime.megatron;
  return because(p.layout.sequence_parallel && set.local_layers() && p.model.norm == Norm::rms &&
                     set.megatron_core >= first_with_rms,
                 "Megatron's own layers have no RMSNorm that sequence parallelism divides: "
                 "--sequence-parallel off");
}

// core/optimizer/optimizer_config.py: Transformer Engine's FusedAdam, or the host's.
Reason precision_aware_needs_adam(const Problem& p) {
  const bool engine = p.runtime.megatron.transformer_engine_version != MegatronSettings::no_engine;
  if (precision_aware(p) && !engine && !offloads_optimizer(p)) {
    return fmt::format(
        "{} needs Transformer Engine's Adam, where transformer_engine=none says it is not there",
        precision_aware_for(p));
  }
  return because(precision_aware(p) && p.training.optimizer != OptimizerKind::adam,
                 "{} needs the precision-aware optimizer, which is adam, not {}",
                 precision_aware_for(p), name_of(p.training.optimizer));
}

Reason precision_aware_needs_sharding(const Problem& p) {
  return because(precision_aware(p) && p.layout.zero == ZeroStage::none,
                 "{} needs the precision-aware optimizer, so the distributed one: ZeRO 1 or above",
                 precision_aware_for(p));
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

// TransformerEngine pytorch/quantization.py check_mxfp8_support.
Reason recipe_of_gpu(const Problem& p) {
  constexpr std::int64_t blackwell = 100;
  return because(
      p.training.precision == Precision::fp8 && p.runtime.megatron.fp8_recipe == Fp8Recipe::mxfp8 &&
          p.cluster.gpu.compute_capability < blackwell,
      "{} has no scales of 32 elements, which fp8_recipe mxfp8 needs", p.cluster.gpu.name);
}

// Megatron's own linears (core/tensor_parallel/layers.py) multiply what they are given: Transformer
// Engine's autocast (core/fp8_utils.py, fp4_utils.py get_fp4_context) does not reach them.
Reason own_linears_are_wide(const Problem& p) {
  return because(is_quantized(p.training.precision) && p.runtime.megatron.local_layers(),
                 "precision {} needs Transformer Engine: Megatron's own layers would multiply in "
                 "16 bits",
                 name_of(p.training.precision));
}

Reason eight_bit_attention(const Problem& p) {
  return because(
      p.runtime.megatron.fp8_dot_product_attention && !is_quantized(p.training.precision),
      "fp8_dot_product_attention needs precision fp8 or nvfp4");
}

// core/transformer/transformer_config.py __post_init__; the output layer has a weight of its own
// (core/extensions/transformer_engine.py TELMHeadColumnParallelLinear).
Reason eight_bit_output_layer(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  if (!set.fp8_output_proj) return std::nullopt;
  if (p.training.precision != Precision::fp8 || set.fp8_recipe != Fp8Recipe::mxfp8) {
    return "fp8_output_proj needs precision fp8 and fp8_recipe mxfp8";
  }
  return because(p.model.tied_embeddings, "fp8_output_proj needs embeddings that are not tied");
}

// core/transformer/transformer_config.py __post_init__.
Reason eight_bit_activation_input(const Problem& p) {
  const auto& moe = p.model.moe;
  const bool swiglu = moe ? moe->gated && !moe->clamped : p.model.mlp.gated;
  return because(p.runtime.megatron.activation_func_fp8_input_store && !swiglu,
                 "activation_func_fp8_input_store is for SwiGLU alone");
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

// The same. Layers that are taken apart to run beside others cannot be run again as a whole.
Reason expert_overlap_keeps_layers(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  if (!set.overlap_moe_expert_parallel_comm) return std::nullopt;
  if (p.layout.recompute == Recompute::full) {
    return "overlap_moe_expert_parallel_comm goes without full recompute";
  }
  const bool experts_again = (repeats(p) & bit_of(RecomputeModule::moe)) != 0;
  return because(experts_again,
                 "overlap_moe_expert_parallel_comm goes without moe in recompute_modules");
}

constexpr Rule rows[] = {
    rules::positions,
    {"M-optimizer", optimizer, set_of({}), megatron_optimizer},
    rules::number_format,
    {"M-fp8-recipe", precision, set_of({}), recipe_of_gpu},
    {"M-fp8-own-layers", precision, set_of({}), own_linears_are_wide},
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
    {"M-context-heads", cp, set_of({tp, cp}), all_to_all_heads},
    rules::world,
    rules::batch,
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
    {"M-recompute-modules", recompute_modules, set_of({recompute, recompute_modules}),
     modules_of_model},
    {"M-expert-overlap-recompute", recompute, set_of({recompute, recompute_modules}),
     expert_overlap_keeps_layers},
    {"M-fsdp-optimizer", optimizer, set_of({zero}), megatron_fsdp_optimizer},
    {"M-8-bit-parameters", zero, set_of({zero}), eight_bit_parameters},
    rules::optimizer_offload_only,
    {"M-precision-aware-adam", optimizer, set_of({offload}), precision_aware_needs_adam},
    {"M-precision-aware-stage", zero, set_of({zero, offload}), precision_aware_needs_sharding},
    rules::hybrid_shards,
    rules::hybrid_needs_sharding,
    {"M-overlap", knobs, set_of({zero, knobs}), overlap_needs_sharding},
    {"M-overlap-gradients", knobs, set_of({zero, knobs}), overlap_needs_gradients},
};

}  // namespace

constexpr RuleBook megatron_rules(rows);

}  // namespace zeroplan
