#pragma once
// What Megatron-Core's step and memory depend on, under its own names where it has them.
// Defaults are read from presets/runtimes/megatron.json, each with its source.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "cost_model/question/layout.hpp"
#include "cost_model/question/names.hpp"

namespace zeroplan {

enum class CrossEntropy { native, te };        // which kernel fuses the loss
enum class AttentionLibrary { fused, flash };  // cuDNN, or the flash-attn package
enum class ContextTransport {
  p2p,
  all_gather,
  a2a
};  // how context parallelism moves keys and values
enum class RecomputeMethod { uniform, block };

template <>
struct Spellings<CrossEntropy> {
  static constexpr std::array<std::string_view, 2> value{"native", "te"};
};
template <>
struct Spellings<AttentionLibrary> {
  static constexpr std::array<std::string_view, 2> value{"fused", "flash"};
};
template <>
struct Spellings<ContextTransport> {
  static constexpr std::array<std::string_view, 3> value{"p2p", "all_gather", "a2a"};
};
template <>
struct Spellings<RecomputeMethod> {
  static constexpr std::array<std::string_view, 2> value{"uniform", "block"};
};

/// Whose pipeline drives Megatron-Core's layers: its own; sail-sg's zero-bubble fork; DeepSeek's
/// DualPipe. The last two split backward passes.
enum class PipelineCode { megatron, zero_bubble, dualpipe };
template <>
struct Spellings<PipelineCode> {
  static constexpr std::array<std::string_view, 3> value{"megatron", "zero-bubble", "dualpipe"};
};

/// Modules that selective recompute may drop, as bits of a set.
enum class RecomputeModule {
  core_attn,
  mlp,
  layernorm,
  moe_act,
  mla_up_proj,
  moe,
  shared_experts,
  gdn_norm_out  // of linear attention: the norm of its output, and the gate
};
template <>
struct Spellings<RecomputeModule> {
  static constexpr std::array<std::string_view, 8> value{
      "core_attn",   "mlp", "layernorm",      "moe_act",
      "mla_up_proj", "moe", "shared_experts", "gdn_norm_out"};
};

/// Modules of a layer whose saved tensors may wait on the host, as bits of a set; in the order in
/// which a layer's forward pass enters them.
enum class OffloadModule {
  attn_norm,
  qkv_linear,
  core_attn,
  attn_proj,
  mlp_norm,
  expert_fc1,
  moe_act,
  fused_group_mlp
};
template <>
struct Spellings<OffloadModule> {
  static constexpr std::array<std::string_view, 8> value{
      "attn_norm", "qkv_linear", "core_attn", "attn_proj",
      "mlp_norm",  "expert_fc1", "moe_act",   "fused_group_mlp"};
};
constexpr unsigned bit_of(OffloadModule module) {
  return 1U << static_cast<unsigned>(module);
}

/// How Transformer Engine scales what 8-bit products read.
enum class Fp8Recipe { delayed, tensorwise, mxfp8, blockwise };
template <>
struct Spellings<Fp8Recipe> {
  static constexpr std::array<std::string_view, 4> value{"delayed", "tensorwise", "mxfp8",
                                                         "blockwise"};
};

/// What replicas of hybrid sharding divide among themselves: nothing, or what the optimizer keeps.
enum class OuterSharding { no_shard, optim };
template <>
struct Spellings<OuterSharding> {
  static constexpr std::array<std::string_view, 2> value{"no_shard", "optim"};
};

/// What of a step the host launches as one graph: nothing; parts of layers, by Megatron-Core's
/// graphs or Transformer Engine's; all of it.
enum class CudaGraphs { none, local, transformer_engine, full_iteration };
template <>
struct Spellings<CudaGraphs> {
  static constexpr std::array<std::string_view, 4> value{"none", "local", "transformer_engine",
                                                         "full_iteration"};
};

/// Parts of layers that graphs may hold, as bits of a set; `full_iteration` is how older releases
/// name the whole step.
enum class GraphScope { full, attn, mlp, moe, moe_router, moe_preprocess, full_iteration, mamba };
template <>
struct Spellings<GraphScope> {
  static constexpr std::array<std::string_view, 8> value{
      "full", "attn", "mlp", "moe", "moe_router", "moe_preprocess", "full_iteration", "mamba"};
};

/// How tokens reach their experts: one copy a chosen expert; or one to each node and each rank.
enum class TokenDispatcher { alltoall, flex };
template <>
struct Spellings<TokenDispatcher> {
  static constexpr std::array<std::string_view, 2> value{"alltoall", "flex"};
};

/// Whose kernels the second one calls.
enum class FlexBackend { deepep, hybridep };
template <>
struct Spellings<FlexBackend> {
  static constexpr std::array<std::string_view, 2> value{"deepep", "hybridep"};
};

/// What Megatron-Core's pipeline_model_parallel_layout says: the layers of each chunk in model
/// order (none: it is not given), and how many multi-token-prediction modules stand beside the
/// loss.
struct PipelineLayout {
  std::vector<std::int64_t> layers;
  std::int64_t mtp_modules = 0;

  bool given() const { return !layers.empty(); }
  friend bool operator==(const PipelineLayout&, const PipelineLayout&) = default;
};

/// In what Megatron-FSDP keeps or reduces gradients; automatic: as what they are made from.
enum class GradientType { automatic, fp32, bf16, fp16 };
template <>
struct Spellings<GradientType> {
  static constexpr std::array<std::string_view, 4> value{"auto", "fp32", "bf16", "fp16"};
};

struct MegatronSettings {
  std::int64_t container = 0;  // of NeMo, whose defaults hold: 100 x year + month; 0: none
  std::int64_t make_vocab_size_divisible_by = 0;
  bool grad_reduce_in_bf16 = false;
  GradientType megatron_fsdp_main_grads_dtype = GradientType::automatic;  // the parameters'
  GradientType megatron_fsdp_grad_comm_dtype = GradientType::automatic;   // the main gradients'
  bool gradient_accumulation_fusion = false;
  std::int64_t exp_avg_bytes = 0;     // first moment
  std::int64_t exp_avg_sq_bytes = 0;  // second moment
  bool use_precision_aware_optimizer = false;
  bool store_param_remainders = false;  // of master parameters, what the bf16 ones lack

  static constexpr std::int64_t engine_beside = 0, no_engine = -1;
  /// 100 x major + minor of the release that runs the layers; else Megatron's own run, with one
  /// beside them, whichever is current, or without.
  std::int64_t transformer_engine_version = engine_beside;
  std::int64_t megatron_core = 0;  // 100 x major + minor; 0: before it
  AttentionLibrary attention_backend = AttentionLibrary::fused;
  bool masked_softmax_fusion = false;  // of unfused attention
  bool bias_activation_fusion =
      false;  // activation and, in experts, its probabilities in one kernel
  bool cross_entropy_loss_fusion = false;
  CrossEntropy cross_entropy_fusion_impl = CrossEntropy::native;
  double hidden_dropout = 0;  // a rate; above zero it keeps a mask
  double attention_dropout = 0;
  bool tp_comm_overlap = false;
  bool scatter_gather_tensors_in_pipeline = false;
  bool async_tensor_allreduce = false;  // async_tensor_model_parallel_allreduce
  bool overlap_grad_reduce = false;
  bool overlap_param_gather = false;
  std::int64_t ddp_bucket_size = 0;  // elements that travel together; 0: by the number of ranks
  bool create_attention_mask_in_dataloader = false;
  bool expandable_segments = false;       // of PYTORCH_CUDA_ALLOC_CONF
  std::int64_t cublas_workspace_kib = 0;  // CUBLAS_WORKSPACE_CONFIG; 0: PyTorch's own choice
  ContextTransport cp_comm_type = ContextTransport::p2p;
  bool moe_grouped_gemm = false;     // one kernel for all local experts, on several streams
  bool moe_permute_fusion = false;   // Transformer Engine's kernels order tokens by expert
  bool moe_pad_to_capacity = false;  // each expert gets exactly its capacity at factor 1

  PipelineCode pipeline_code = PipelineCode::megatron;
  std::int64_t microbatch_group_size_per_vp_stage = 0;  // 0: pp
  RecomputeMethod recompute_method = RecomputeMethod::uniform;
  std::int64_t recompute_num_layers =
      0;  // uniform: layers a checkpoint; block: layers recomputed; 0: 1, all
  unsigned recompute_modules = 0;  // bits of RecomputeModule

  bool fp8_param_gather = false;  // matrices of the layers are kept and gathered in 8 bits alone
  Fp8Recipe fp8_recipe = Fp8Recipe::delayed;
  bool fp8_dot_product_attention = false;  // its products in 8 bits too
  bool fp8_output_proj = false;            // products of the output layer in 8 bits too
  bool first_last_layers_bf16 = false;     // of fp8 and nvfp4: these layers are in 16 bits
  std::int64_t num_layers_at_start_in_bf16 = 1;
  std::int64_t num_layers_at_end_in_bf16 = 1;
  bool activation_func_fp8_input_store = false;  // SwiGLU keeps what it reads in 8 bits
  CudaGraphs cuda_graph_impl = CudaGraphs::none;
  unsigned cuda_graph_scope = 0;  // bits of GraphScope; none: `full`
  TokenDispatcher moe_token_dispatcher_type = TokenDispatcher::alltoall;
  FlexBackend moe_flex_dispatcher_backend = FlexBackend::deepep;
  bool overlap_moe_expert_parallel_comm = false;  // dispatch beside another micro-batch's pass
  bool delay_wgrad_compute = false;               // weight gradients beside it too
  bool use_fused_weighted_squared_relu = false;   // of experts, with the router's probabilities
  bool use_transformer_engine_op_fuser = false;   // experts' activation and casts inside products
  std::int64_t cpu_offloading_num_layers = 0;     // whose saved tensors wait on the host
  unsigned offload_modules = 0;  // bits of OffloadModule: those whose saved tensors wait there
  double activation_offload_fraction = 1;      // of their groups, the earlier ones of a pass
  std::int64_t min_offloaded_tensor_size = 0;  // elements
  bool init_model_with_meta_device = false;    // Megatron-FSDP builds one module at a time
  // What of the optimizer the replicas of hybrid sharding divide beyond a sharding group.
  OuterSharding outer_dp_sharding_strategy = OuterSharding::no_shard;

  std::int64_t mtp_num_layers = 0;      // multi-token-prediction modules that are trained
  bool mtp_use_repeated_layer = false;  // they are one, which runs as often

  bool account_for_embedding_in_pipeline_split = false;
  bool account_for_loss_in_pipeline_split = false;
  std::int64_t decoder_first_pipeline_num_layers = 0;  // 0: not given
  std::int64_t decoder_last_pipeline_num_layers = 0;   // 0: not given
  PipelineLayout pipeline_model_parallel_layout;

  /// Asked for, or needed by narrow moments.
  constexpr bool precision_aware() const {
    return use_precision_aware_optimizer || exp_avg_bytes < 4 || exp_avg_sq_bytes < 4;
  }
  /// Whether graphs hold this part of layers.
  constexpr bool captures(GraphScope part) const {
    const auto bit = [](GraphScope scope) { return 1U << static_cast<unsigned>(scope); };
    if (cuda_graph_impl == CudaGraphs::none) return false;
    if (cuda_graph_impl == CudaGraphs::full_iteration) return true;
    return cuda_graph_scope == 0 || (cuda_graph_scope & (bit(part) | bit(GraphScope::full) |
                                                         bit(GraphScope::full_iteration))) != 0;
  }
  /// Elements of a bucket among a layout's replicas (core/distributed/
  /// distributed_data_parallel.py).
  constexpr std::int64_t bucket_elements(const Layout& l) const {
    if (ddp_bucket_size > 0) return ddp_bucket_size;
    return std::max<std::int64_t>(40'000'000, 1'000'000 * l.dp * l.cp);
  }
  /// Megatron's own layers, not Transformer Engine's.
  constexpr bool local_layers() const { return transformer_engine_version <= engine_beside; }
  /// Whether Transformer Engine is there to give placeholders of weight gradients
  /// (TransformerEngine pytorch/module/base.py get_dummy_wgrad).
  constexpr bool has_placeholders() const {
    constexpr std::int64_t first = 203;
    return transformer_engine_version == engine_beside || transformer_engine_version >= first;
  }
  friend bool operator==(const MegatronSettings&, const MegatronSettings&) = default;
};

}  // namespace zeroplan
