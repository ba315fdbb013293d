// What of a divided layer does Megatron-Core refuse?
#include "cost_model/runtime/megatron/reasons.hpp"

#include <algorithm>

namespace zeroplan::megatron_reasons {

using namespace legality;  // NOLINT: what is wrong is said in its words

// core/transformer/attention.py, which gathers what ranks project of a head that they share since
// f7dfb99795 (2025-12-06, release 0.16).
Reason kv_heads_or_replicas(const Problem& p) {
  constexpr std::int64_t first_with_shared_heads = 16;
  const std::int64_t kv = p.model.attention.kv_heads;
  if (kv < p.layout.tp && p.runtime.megatron.megatron_core < first_with_shared_heads) {
    return fmt::format(
        "{} key-value heads and tp {}: ranks share a head since --set megatron_core=0.16", kv,
        p.layout.tp);
  }
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
  return because(
      p.layout.cp > 1 && p.training.attention == AttentionKernel::unfused,
      "Megatron-Core has no unfused attention with context parallelism (--cp {}): {}", p.layout.cp,
      p.runtime.megatron.local_layers() ? "--set transformer_engine=2.19" : "--attention flash");
}

// core/transformer/dot_product_attention.py; only the legacy models (megatron/legacy/model/
// transformer.py) called flash-attn, until 8de8238844 removed them, before release 0.18.
Reason own_attention_is_unfused(const Problem& p) {
  constexpr std::int64_t first_without_legacy = 18;
  const MegatronSettings& set = p.runtime.megatron;
  return because(set.local_layers() && p.training.attention == AttentionKernel::flash &&
                     set.megatron_core >= first_without_legacy,
                 "Megatron's own layers have no flash attention: --attention unfused; its legacy "
                 "models had it until --set megatron_core=0.17");
}

// core/transformer/dot_product_attention.py takes no key and value widths (k_channels), which
// multi_latent_attention.py hands to it.
Reason own_layers_have_no_latents(const Problem& p) {
  return because(p.model.attention.mla && p.runtime.megatron.local_layers(),
                 "Megatron's own layers have no latent attention (MLA): --set "
                 "transformer_engine=2.19");
}

// core/ssm/gated_delta_net, as release 0.19 has it; before, other functions kept other tensors.
// core/models/gpt/experimental_attention_variant_module_specs.py has Transformer Engine's layers
// alone.
Reason linear_attention_of_release(const Problem& p) {
  constexpr std::int64_t first = 19;
  if (!is_hybrid(p.model)) return std::nullopt;
  const std::string_view what = p.model.state_space ? "state spaces" : "linear attention";
  if (p.runtime.megatron.local_layers()) {
    return fmt::format(
        "Megatron's own layers have no {}, which {} has: --set transformer_engine=2.19", what,
        p.model.name);
  }
  return because(p.runtime.megatron.megatron_core < first,
                 "{}, which {} has, is described as Megatron-Core has it since "
                 "--set megatron_core=0.19",
                 what, p.model.name);
}

// core/models/hybrid/hybrid_layer_specs.py hybrid_stack_spec, core/ssm/mamba_mixer.py.
Reason state_space_layers(const Problem& p) {
  const auto& mixer = p.model.state_space;
  if (!mixer) return std::nullopt;
  if (mixer->bias || !mixer->convolution_bias) {
    return "Megatron's state spaces have a bias in their convolution, and none in projections";
  }
  return because(std::ranges::any_of(p.model.layer_kinds, has_both_halves),
                 "layers of {} are a state space or attention and an MLP: those of Megatron's "
                 "hybrid models are one of them each",
                 p.model.name);
}

// core/transformer/transformer_config.py __post_init__.
Reason linear_heads(const Problem& p) {
  const auto& linear = p.model.linear_attention;
  const std::int64_t ranks = p.layout.tp * p.layout.cp;
  if (!linear) return std::nullopt;
  return because(linear->key_heads % ranks != 0 || linear->value_heads % ranks != 0,
                 "tp {} and cp {} together must divide the {} key and {} value heads of linear "
                 "attention",
                 p.layout.tp, p.layout.cp, linear->key_heads, linear->value_heads);
}

// core/ssm/{mamba_mixer,mamba_context_parallel}.py.
Reason state_space_heads(const Problem& p) {
  const auto& mixer = p.model.state_space;
  if (!mixer) return std::nullopt;
  const std::int64_t tp = p.layout.tp, cp = p.layout.cp;
  if (mixer->heads % (tp * cp) != 0) {
    return fmt::format("tp {} and cp {} together must divide the {} heads of state spaces", tp, cp,
                       mixer->heads);
  }
  if (mixer->groups % tp != 0) {
    return fmt::format("tp {} must divide the {} groups of state spaces", tp, mixer->groups);
  }
  const std::int64_t groups = mixer->groups / tp;
  return because(groups % cp != 0 && cp % groups != 0,
                 "{} groups of state spaces on a rank and cp {}: neither divides the other", groups,
                 cp);
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

}  // namespace zeroplan::megatron_reasons
