#pragma once
// Private to presets: which field of Megatron-Bridge is which argument of Megatron-LM? One table,
// for the reader and the writer.

#include <array>
#include <cstdint>
#include <string_view>

namespace zeroplan {

/// The function of recipes/common.py whose configuration a recipe changes.
inline constexpr std::string_view common_recipe = "_pretrain_common";

/// Megatron's own layers, and Muon, as Megatron-Bridge calls them.
inline constexpr std::string_view local_layers = "local_layer_spec";
inline constexpr std::string_view muon_of_bridge = "dist_muon";

/// Elements of a bucket that CommOverlapConfig chooses where it overlaps the replicas' messages
/// (training/comm_overlap.py).
inline constexpr std::int64_t bucket_of_overlaps = 128 * 1024 * 1024;

/// A type as PyTorch calls it, and as the arguments do.
struct Dtype {
  std::string_view torch, name;
};
inline constexpr Dtype dtypes[] = {
    {"float32", "fp32"}, {"bfloat16", "bf16"}, {"float16", "fp16"}, {"uint8", "fp8"}};

/// What the field holds where the argument is there.
enum class BridgeValue {
  value,     // the same
  flag,      // True
  negation,  // False
  dtype,     // torch.bfloat16 for bf16
  backend    // AttnBackend.fused for fused
};

struct BridgeField {
  std::string_view argument;
  std::string_view field;  // with its section
  BridgeValue holds = BridgeValue::value;
  std::string_view otherwise =
      "";                   // written where a value is not among the arguments; empty: nothing
  bool of_experts = false;  // written of models with experts alone
};

/// In the order in which they are written. Precision and overlaps have sections of their own.
/// Sources: Megatron-Bridge @067f987df training/config.py, models/gpt_provider.py; Megatron-LM
/// @d98e8a64dd core/transformer/transformer_config.py, core/model_parallel_config.py,
/// core/optimizer/optimizer_config.py, core/distributed/distributed_data_parallel_config.py.
inline constexpr std::array bridge_fields{
    BridgeField{"hybrid-layer-pattern", "model.hybrid_layer_pattern"},
    BridgeField{"seq-length", "model.seq_length"},
    BridgeField{"tensor-model-parallel-size", "model.tensor_model_parallel_size",
                BridgeValue::value, "1"},
    BridgeField{"pipeline-model-parallel-size", "model.pipeline_model_parallel_size",
                BridgeValue::value, "1"},
    BridgeField{"num-virtual-stages-per-pipeline-rank",
                "model.virtual_pipeline_model_parallel_size", BridgeValue::value, "None"},
    BridgeField{"microbatch-group-size-per-virtual-pipeline-stage",
                "model.microbatch_group_size_per_vp_stage"},
    BridgeField{"decoder-first-pipeline-num-layers", "model.num_layers_in_first_pipeline_stage",
                BridgeValue::value, "None"},
    BridgeField{"decoder-last-pipeline-num-layers", "model.num_layers_in_last_pipeline_stage",
                BridgeValue::value, "None"},
    BridgeField{"pipeline-model-parallel-layout", "model.pipeline_model_parallel_layout",
                BridgeValue::value, "None"},
    BridgeField{"account-for-embedding-in-pipeline-split",
                "model.account_for_embedding_in_pipeline_split", BridgeValue::flag},
    BridgeField{"account-for-loss-in-pipeline-split", "model.account_for_loss_in_pipeline_split",
                BridgeValue::flag},
    BridgeField{"context-parallel-size", "model.context_parallel_size", BridgeValue::value, "1"},
    BridgeField{"cp-comm-type", "model.cp_comm_type", BridgeValue::value, "None"},
    BridgeField{"expert-model-parallel-size", "model.expert_model_parallel_size",
                BridgeValue::value, "1"},
    BridgeField{"expert-tensor-parallel-size", "model.expert_tensor_parallel_size"},
    BridgeField{"sequence-parallel", "model.sequence_parallel", BridgeValue::flag},
    BridgeField{"global-batch-size", "train.global_batch_size"},
    BridgeField{"micro-batch-size", "train.micro_batch_size"},
    BridgeField{"recompute-granularity", "model.recompute_granularity", BridgeValue::value, "None"},
    BridgeField{"recompute-modules", "model.recompute_modules", BridgeValue::value, "None"},
    BridgeField{"recompute-method", "model.recompute_method", BridgeValue::value, "None"},
    BridgeField{"recompute-num-layers", "model.recompute_num_layers", BridgeValue::value, "None"},
    BridgeField{"attention-backend", "model.attention_backend", BridgeValue::backend},
    BridgeField{"no-masked-softmax-fusion", "model.masked_softmax_fusion", BridgeValue::negation},
    BridgeField{"no-bias-swiglu-fusion", "model.bias_activation_fusion", BridgeValue::negation},
    BridgeField{"no-gradient-accumulation-fusion", "model.gradient_accumulation_fusion",
                BridgeValue::negation},
    BridgeField{"cross-entropy-loss-fusion", "model.cross_entropy_loss_fusion", BridgeValue::flag},
    BridgeField{"cross-entropy-fusion-impl", "model.cross_entropy_fusion_impl", BridgeValue::value,
                "native"},
    BridgeField{"hidden-dropout", "model.hidden_dropout"},
    BridgeField{"attention-dropout", "model.attention_dropout"},
    BridgeField{"make-vocab-size-divisible-by", "model.make_vocab_size_divisible_by",
                BridgeValue::value, "128"},
    BridgeField{"mtp-num-layers", "model.mtp_num_layers", BridgeValue::value, "None"},
    BridgeField{"init-model-with-meta-device", "model.init_model_with_meta_device",
                BridgeValue::flag},
    BridgeField{"fp8-output-proj", "model.fp8_output_proj", BridgeValue::flag},
    BridgeField{"activation-func-fp8-input-store", "model.activation_func_fp8_input_store",
                BridgeValue::flag},
    BridgeField{"cuda-graph-impl", "model.cuda_graph_impl", BridgeValue::value, "none"},
    BridgeField{"cuda-graph-scope", "model.cuda_graph_scope"},
    BridgeField{"cpu-offloading", "model.cpu_offloading", BridgeValue::flag},
    BridgeField{"cpu-offloading-num-layers", "model.cpu_offloading_num_layers"},
    BridgeField{"fine-grained-activation-offloading", "model.fine_grained_activation_offloading",
                BridgeValue::flag},
    BridgeField{"offload-modules", "model.offload_modules", BridgeValue::value, "None"},
    BridgeField{"activation-offload-fraction", "model.activation_offload_fraction"},
    BridgeField{"min-offloaded-tensor-size", "model.min_offloaded_tensor_size"},
    BridgeField{"mtp-use-repeated-layer", "model.mtp_use_repeated_layer", BridgeValue::flag},
    BridgeField{"use-fused-weighted-squared-relu", "model.use_fused_weighted_squared_relu",
                BridgeValue::flag},
    BridgeField{"use-transformer-engine-op-fuser", "model.use_transformer_engine_op_fuser",
                BridgeValue::flag},
    BridgeField{"moe-token-dispatcher-type", "model.moe_token_dispatcher_type"},
    BridgeField{"moe-flex-dispatcher-backend", "model.moe_flex_dispatcher_backend"},
    BridgeField{"moe-grouped-gemm", "model.moe_grouped_gemm", BridgeValue::flag, "", true},
    BridgeField{"moe-permute-fusion", "model.moe_permute_fusion", BridgeValue::flag, "", true},
    BridgeField{"moe-pad-expert-input-to-capacity", "model.moe_pad_expert_input_to_capacity",
                BridgeValue::flag, "", true},
    BridgeField{"use-distributed-optimizer", "ddp.use_distributed_optimizer", BridgeValue::flag},
    BridgeField{"use-megatron-fsdp", "ddp.use_megatron_fsdp", BridgeValue::flag},
    BridgeField{"data-parallel-sharding-strategy", "ddp.data_parallel_sharding_strategy"},
    BridgeField{"num-distributed-optimizer-instances", "ddp.num_distributed_optimizer_instances"},
    BridgeField{"outer-dp-sharding-strategy", "ddp.outer_dp_sharding_strategy", BridgeValue::value,
                "no_shard"},
    BridgeField{"overlap-grad-reduce", "ddp.overlap_grad_reduce", BridgeValue::flag},
    BridgeField{"overlap-param-gather", "ddp.overlap_param_gather", BridgeValue::flag},
    BridgeField{"ddp-bucket-size", "ddp.bucket_size"},
    BridgeField{"megatron-fsdp-main-grads-dtype", "ddp.megatron_fsdp_main_grads_dtype",
                BridgeValue::dtype},
    BridgeField{"megatron-fsdp-grad-comm-dtype", "ddp.megatron_fsdp_grad_comm_dtype",
                BridgeValue::dtype},
    BridgeField{"optimizer", "optimizer.optimizer"},
    BridgeField{"use-precision-aware-optimizer", "optimizer.use_precision_aware_optimizer",
                BridgeValue::flag},
    BridgeField{"exp-avg-dtype", "optimizer.exp_avg_dtype", BridgeValue::dtype},
    BridgeField{"exp-avg-sq-dtype", "optimizer.exp_avg_sq_dtype", BridgeValue::dtype},
    BridgeField{"no-store-param-remainders", "optimizer.store_param_remainders",
                BridgeValue::negation},
    BridgeField{"optimizer-cpu-offload", "optimizer.optimizer_cpu_offload", BridgeValue::flag}};

}  // namespace zeroplan
