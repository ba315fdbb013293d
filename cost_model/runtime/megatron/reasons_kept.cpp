// What of recompute and of offloaded activations does Megatron-Core refuse?
#include "cost_model/runtime/megatron/reasons.hpp"

#include "cost_model/rank/recomputed.hpp"

namespace zeroplan::megatron_reasons {

using namespace legality;  // NOLINT: what is wrong is said in its words

// `uniform` is also what stands where nobody gave a method.
Reason groups_need_full_recompute(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  const bool given =
      set.recompute_num_layers > 0 || set.recompute_method != RecomputeMethod::uniform;
  return because(given && p.layout.recompute == Recompute::selective,
                 "recompute_method and recompute_num_layers are of full recompute; selective takes "
                 "recompute_modules");
}

// core/transformer/multi_token_prediction.py _checkpointed_forward asserts it.
Reason mtp_modules_run_again_alone(const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  const bool groups = p.layout.recompute == Recompute::full && set.recompute_num_layers > 1 &&
                      set.recompute_method == RecomputeMethod::uniform;
  return because(groups && trained_mtp_modules(p) > 0,
                 "mtp_num_layers goes without groups of layers that run again: "
                 "recompute_num_layers 1, or recompute_method block");
}

Reason modules_of_model(const Problem& p) {
  if (p.layout.recompute != Recompute::selective) return std::nullopt;
  const unsigned modules = p.runtime.megatron.recompute_modules;
  const auto drops = [&](RecomputeModule m) { return (modules & bit_of(m)) != 0; };
  if (drops(RecomputeModule::mla_up_proj) && !p.model.attention.mla) {
    return fmt::format("recompute_modules: {} has no latent attention for mla_up_proj",
                       p.model.name);
  }
  if (drops(RecomputeModule::gdn_norm_out) && !p.model.linear_attention) {
    return fmt::format("recompute_modules: {} has no linear attention for gdn_norm_out",
                       p.model.name);
  }
  const bool grouped = p.model.moe && p.runtime.megatron.moe_grouped_gemm;
  return because(drops(RecomputeModule::moe_act) && !grouped,
                 "recompute_modules: moe_act needs experts in one grouped GEMM "
                 "(--set moe_grouped_gemm=true)");
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

// core/transformer/transformer_config.py __post_init__, training/arguments.py; that layers which
// run again as a whole keep no groups is ours to refuse.
Reason offloaded_modules_of_layers(const Problem& p) {
  using enum OffloadModule;
  const MegatronSettings& set = p.runtime.megatron;
  const unsigned modules = set.offload_modules;
  if (modules == 0) return std::nullopt;
  const auto has = [&](OffloadModule module) { return (modules & bit_of(module)) != 0; };
  if (set.local_layers()) return "offload_modules needs the layers of Transformer Engine";
  if (set.cpu_offloading_num_layers > 0) {
    return "offload_modules goes without cpu_offloading_num_layers";
  }
  if (set.pipeline_code != PipelineCode::megatron) {
    return "offload_modules goes with Megatron-Core's own pipelines alone";
  }
  if (has(attn_proj) && !has(core_attn)) {
    return "offload_modules: attn_proj needs core_attn, whose backward pass reads the same tensor";
  }
  const bool inside_experts = has(expert_fc1) || has(moe_act);
  if (has(fused_group_mlp) && inside_experts) {
    return "offload_modules: fused_group_mlp goes without expert_fc1 and moe_act";
  }
  if (has(fused_group_mlp) && !set.use_transformer_engine_op_fuser) {
    return "offload_modules: fused_group_mlp needs use_transformer_engine_op_fuser";
  }
  if (set.cuda_graph_impl == CudaGraphs::local) {
    return "offload_modules goes without graphs of cuda_graph_impl local";
  }
  if (set.activation_offload_fraction == 0) {
    return "activation_offload_fraction must be above 0: Megatron-Core fails where nothing leaves";
  }
  if (p.layout.recompute == Recompute::full) return "offload_modules goes without full recompute";
  const bool experts_again = (repeats(p) & bit_of(RecomputeModule::moe)) != 0;
  return because(experts_again && (inside_experts || has(fused_group_mlp)),
                 "offload_modules: moe in recompute_modules leaves nothing of the experts to move");
}

// core/transformer/transformer_config.py __post_init__. Layers that are taken apart to run beside
// others cannot be run again as a whole.
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

}  // namespace zeroplan::megatron_reasons
