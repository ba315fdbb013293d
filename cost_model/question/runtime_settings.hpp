#pragma once
// Who executes the step, and the settings of that runtime which memory depends on.
// Defaults are not here: they are read from presets/runtimes/*.json, each with its source.

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "cost_model/question/names.hpp"

namespace zeroplan {

enum class Runtime { megatron, fsdp2, ddp, deepspeed, zero_paper, zeroplan, nanotron };

template <>
struct Spellings<Runtime> {
  static constexpr std::array<std::string_view, 7> value{
      "megatron", "fsdp2", "ddp", "deepspeed", "zero-paper", "zeroplan", "nanotron"};
};

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
enum class RecomputeModule { core_attn, mlp, layernorm, moe_act, mla_up_proj, moe, shared_experts };
template <>
struct Spellings<RecomputeModule> {
  static constexpr std::array<std::string_view, 7> value{
      "core_attn", "mlp", "layernorm", "moe_act", "mla_up_proj", "moe", "shared_experts"};
};

/// How Transformer Engine scales what 8-bit products read.
enum class Fp8Recipe { delayed, tensorwise, mxfp8, blockwise };
template <>
struct Spellings<Fp8Recipe> {
  static constexpr std::array<std::string_view, 4> value{"delayed", "tensorwise", "mxfp8",
                                                         "blockwise"};
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
enum class GraphScope { full, attn, mlp, moe, moe_router, moe_preprocess, full_iteration };
template <>
struct Spellings<GraphScope> {
  static constexpr std::array<std::string_view, 7> value{
      "full", "attn", "mlp", "moe", "moe_router", "moe_preprocess", "full_iteration"};
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

struct MegatronSettings {
  std::int64_t container = 0;  // of NeMo, whose defaults hold: 100 x year + month; 0: none
  std::int64_t make_vocab_size_divisible_by = 0;
  bool grad_reduce_in_bf16 = false;
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
  bool fp8_dot_product_attention = false;        // its products in 8 bits too
  bool fp8_output_proj = false;                  // products of the output layer in 8 bits too
  bool activation_func_fp8_input_store = false;  // SwiGLU keeps what it reads in 8 bits
  CudaGraphs cuda_graph_impl = CudaGraphs::none;
  unsigned cuda_graph_scope = 0;  // bits of GraphScope; none: `full`
  TokenDispatcher moe_token_dispatcher_type = TokenDispatcher::alltoall;
  FlexBackend moe_flex_dispatcher_backend = FlexBackend::deepep;
  bool overlap_moe_expert_parallel_comm = false;  // dispatch beside another micro-batch's pass
  bool delay_wgrad_compute = false;               // weight gradients beside it too
  bool use_transformer_engine_op_fuser = false;   // experts' activation and casts inside products
  std::int64_t cpu_offloading_num_layers = 0;     // whose saved tensors wait on the host
  bool init_model_with_meta_device = false;       // Megatron-FSDP builds one module at a time

  std::int64_t mtp_num_layers = 0;  // multi-token-prediction modules that are trained

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
  /// Elements of a bucket among so many ranks (core/distributed/distributed_data_parallel.py).
  constexpr std::int64_t bucket_elements(std::int64_t ranks) const {
    if (ddp_bucket_size > 0) return ddp_bucket_size;
    return std::max<std::int64_t>(40'000'000, 1'000'000 * ranks);
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

/// `default` keeps what the backward pass reads first.
enum class Reshard { by_default, always };
template <>
struct Spellings<Reshard> {
  static constexpr std::array<std::string_view, 2> value{"default", "always"};
};

/// Whose model code runs.
enum class LayerCode { torchtitan, huggingface };
template <>
struct Spellings<LayerCode> {
  static constexpr std::array<std::string_view, 2> value{"torchtitan", "huggingface"};
};

/// `script`: as torchtitan's launch script sets it at the recipe's date.
enum class SegmentMode { script, expandable, native };
template <>
struct Spellings<SegmentMode> {
  static constexpr std::array<std::string_view, 3> value{"script", "true", "false"};
};

/// `recipe`: as the code does by itself at the recipe's date.
enum class RecipeSwitch { recipe, on, off };
template <>
struct Spellings<RecipeSwitch> {
  static constexpr std::array<std::string_view, 3> value{"recipe", "true", "false"};
};

/// PyTorch's implementations of an optimizer, or that which the code takes by itself.
enum class OptimizerCode { recipe, fused, foreach, for_loop };
template <>
struct Spellings<OptimizerCode> {
  static constexpr std::array<std::string_view, 4> value{"recipe", "fused", "foreach", "for-loop"};
};

/// The format in which gradients are reduced, or that which the code takes by itself.
enum class ReduceFormat { recipe, fp32, bf16 };
template <>
struct Spellings<ReduceFormat> {
  static constexpr std::array<std::string_view, 3> value{"recipe", "fp32", "bf16"};
};

/// What becomes of Hugging Face's logits when the loss is known.
enum class Logits { dropped, kept };
template <>
struct Spellings<Logits> {
  static constexpr std::array<std::string_view, 2> value{"dropped", "kept"};
};

/// What torch.compile takes, where it is enabled.
enum class CompiledParts { model_and_loss, model, loss };
template <>
struct Spellings<CompiledParts> {
  static constexpr std::array<std::string_view, 3> value{"model,loss", "model", "loss"};
};

struct Fsdp2Settings {
  std::int64_t recipe_date = 0;  // 20250206: of the torchtitan checkout that runs
  LayerCode layers = LayerCode::torchtitan;
  std::int64_t parameter_bytes = 0;  // `training.dtype`: of the sharded copy the optimizer updates
  std::int64_t mixed_precision_bytes = 0;  // `training.mixed_precision_param`: of the gathered copy
  std::int64_t loss_chunks = 0;            // 0: as at the recipe's date; 1: the logits exist whole
  bool compile = false;
  CompiledParts compile_components = CompiledParts::model_and_loss;
  std::int64_t flash_attention = 0;      // generation of its kernels
  std::int64_t selective_ac_layers = 0;  // selective recompute: of every Nth layer; 0: by operator
  Reshard reshard_after_forward = Reshard::by_default;
  bool float8_all_gather = false;  // linear weights are gathered in 8 bits
  bool loss_parallel = false;      // with tensor parallelism each rank keeps its part of the logits
  SegmentMode expandable_segments = SegmentMode::script;
  bool full_state_dict = false;  // checkpoints hold whole parameters
  RecipeSwitch disable_cuda_graphs = RecipeSwitch::recipe;
  OptimizerCode optimizer_code = OptimizerCode::recipe;
  ReduceFormat reduce_format = ReduceFormat::recipe;
  // Of Hugging Face's layers: who wraps them, whose code they are, and how the loop calls them.
  std::int64_t accelerate_version = 0;    // 100 x major + minor
  std::int64_t transformers_version = 0;  // the same
  Logits logits = Logits::dropped;
  bool sync_each_batch = false;  // gradients are reduced after each micro-batch

  constexpr bool compiles_layers() const {
    return compile && compile_components != CompiledParts::loss;
  }
  constexpr bool compiles_loss() const {
    return compile && compile_components != CompiledParts::model;
  }
  friend bool operator==(const Fsdp2Settings&, const Fsdp2Settings&) = default;
};

/// How DeepSpeed's pipeline divides layers: by parameters; by their number; by their number with
/// the embedding and the head as a layer each.
enum class PartitionMethod { parameters, transformer, transformer_embedding };
template <>
struct Spellings<PartitionMethod> {
  static constexpr std::array<std::string_view, 3> value{"parameters", "type:transformer",
                                                         "type:transformer|embedding"};
};

struct DeepspeedSettings {
  std::int64_t version = 0;  // 100 x major + minor
  PartitionMethod partition_method = PartitionMethod::parameters;
  bool partition_activations = false;   // checkpoints of Megatron-DeepSpeed's layers, over tp
  bool cpu_checkpointing = false;       // and kept on the host
  bool contiguous_checkpoints = false;  // all of them made at once
  std::int64_t number_checkpoints = 0;  // so many; 0: one a layer
  Logits logits = Logits::dropped;      // of Hugging Face's loop
  double hidden_dropout = 0;            // of Megatron-DeepSpeed's layers
  double attention_dropout = 0;
  std::int64_t reduce_bucket_size = 0;  // elements
  bool overlap_comm = false;
  bool fp32_grad_accumulation = false;  // `data_types.grad_accum_dtype` = fp32
  std::int64_t stage3_prefetch_bucket_size = 0;
  std::int64_t stage3_max_live_parameters = 0;
  std::int64_t stage3_max_reuse_distance = 0;
  std::int64_t sub_group_size = 0;
  std::int64_t hpz_partition_size =
      0;                             // ZeRO++: ranks of a node that hold all parameters; 0, 1: off
  bool quantized_weights = false;    // ZeRO++ qwZ: stage 3 gathers 8 bits an element
  bool quantized_gradients = false;  // ZeRO++ qgZ: stage 3 reduces 4 bits an element
  std::int64_t mics_shard_size = 0;  // MiCS: ranks of a sharding group, as hsdp; 0: off
  bool gathers_on_save = false;      // stage 3 saves whole 16-bit weights
  friend bool operator==(const DeepspeedSettings&, const DeepspeedSettings&) = default;
};

struct DdpSettings {
  bool gradient_as_bucket_view = false;
  friend bool operator==(const DdpSettings&, const DdpSettings&) = default;
};

struct ZeroPaperSettings {
  std::int64_t optimizer_bytes =
      0;  // K: bytes of optimizer state a parameter; 0: from the optimizer
  friend bool operator==(const ZeroPaperSettings&, const ZeroPaperSettings&) = default;
};

/// zeroplan's own engine (validator/), which the ZeRO paper's section 6 names Pa, CB and MD.
struct ZeroplanSettings {
  bool prefetch = false;                // under ZeRO 3: the next unit is gathered beside this one
  bool partition_activations = false;   // Pa: checkpoints are divided over tp
  std::int64_t reduce_bucket_size = 0;  // CB: elements a collective carries; 0: whole units
  bool contiguous_memory_optimization = false;  // MD: checkpoints and buckets are made once
  bool overlap_comm = false;  // under ZeRO 2 and 3: gradients travel while the next unit computes

  constexpr bool constant_buffers() const { return reduce_bucket_size > 0; }
  friend bool operator==(const ZeroplanSettings&, const ZeroplanSettings&) = default;
};

struct RuntimeCode;      // cost_model/question/runtime_code.hpp
struct RecordedProgram;  // cost_model/program/recorded.hpp

/// Who runs, with its settings. Those of the others are as they are here, which changes nothing.
struct RuntimeSpec {
  Runtime kind = Runtime::megatron;
  const RuntimeCode* other = nullptr;  // one that is not in the list, instead; it must stay alive
  std::shared_ptr<const RecordedProgram> recorded =
      {};  // its step as it ran, where it was recorded
  MegatronSettings megatron;
  Fsdp2Settings fsdp2;
  DeepspeedSettings deepspeed;
  DdpSettings ddp;
  ZeroPaperSettings zero_paper;
  ZeroplanSettings zeroplan;
  friend bool operator==(const RuntimeSpec&, const RuntimeSpec&) = default;
};

}  // namespace zeroplan
