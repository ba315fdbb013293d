#pragma once
// Who executes the step, and the settings of that runtime which memory depends on.
// Defaults are not here: they are read from presets/runtimes/*.json, each with its source.

#include <array>
#include <cstdint>
#include <memory>

#include "cost_model/question/megatron_settings.hpp"
#include "cost_model/question/names.hpp"

namespace zeroplan {

enum class Runtime { megatron, fsdp2, ddp, deepspeed, zero_paper, zeroplan, nanotron };

template <>
struct Spellings<Runtime> {
  static constexpr std::array<std::string_view, 7> value{
      "megatron", "fsdp2", "ddp", "deepspeed", "zero-paper", "zeroplan", "nanotron"};
};

/// What is resharded after its forward pass; `default` keeps what the backward pass reads first.
enum class Reshard { by_default, always };
template <>
struct Spellings<Reshard> {
  static constexpr std::array<std::string_view, 2> value{"default", "always"};
};

/// What one scale of torchao's 8-bit linears covers: a tensor, or a row; and whether weight
/// gradients stay in 16 bits (`gw_hp`). `delayed`: Transformer Engine's linears instead, a tensor
/// each.
enum class Float8Recipe { recipe, tensorwise, rowwise, rowwise_with_gw_hp, delayed };
template <>
struct Spellings<Float8Recipe> {
  static constexpr std::array<std::string_view, 5> value{"recipe", "tensorwise", "rowwise",
                                                         "rowwise_with_gw_hp", "delayed"};
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

/// What Transformers calls for fused attention: PyTorch's scaled_dot_product_attention, or the
/// package flash-attn.
enum class AttnImplementation { sdpa, flash_attention_2 };
template <>
struct Spellings<AttnImplementation> {
  static constexpr std::array<std::string_view, 2> value{"sdpa", "flash_attention_2"};
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
  // Settings of a loop of one's own, which wraps each layer by itself:
  bool wrap_by_layer = false;             // a search chooses the loop's other three
  std::int64_t recompute_num_layers = 0;  // the first ones of each chunk; 0: all
  bool selective_rest = false;            // other layers by operator, where the first repeat all
  std::int64_t no_reshard_layers = 0;     // the last ones stay gathered between the passes
  Float8Recipe float8_recipe = Float8Recipe::recipe;
  bool float8_all_gather = false;      // linear weights are gathered in 8 bits
  bool async_tensor_parallel = false;  // layers' collectives are cut up beside their products
  bool loss_parallel = false;  // with tensor parallelism each rank keeps its part of the logits
  SegmentMode expandable_segments = SegmentMode::script;
  bool full_state_dict = false;  // checkpoints hold whole parameters
  RecipeSwitch disable_cuda_graphs = RecipeSwitch::recipe;
  OptimizerCode optimizer_code = OptimizerCode::recipe;
  ReduceFormat reduce_format = ReduceFormat::recipe;
  std::int64_t torch_version = 0;  // 100 x major + minor; 0: as at the recipe's date
  // For Hugging Face's layers: who wraps them, whose code they are, and how the loop calls them.
  std::int64_t accelerate_version = 0;    // 100 x major + minor
  std::int64_t transformers_version = 0;  // 100 x major + minor
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
  bool cpu_checkpointing = false;       // checkpoints are kept on the host
  bool contiguous_checkpoints = false;  // all checkpoints are made at once
  std::int64_t number_checkpoints = 0;  // checkpoints made at once; 0: one a layer
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

/// nanotron's code, by the month of its last change; it has no releases.
enum class NanotronVersion { of_2024_12, of_2025_06 };
template <>
struct Spellings<NanotronVersion> {
  static constexpr std::array<std::string_view, 2> value{"2024-12", "2025-06"};
};

struct NanotronSettings {
  NanotronVersion version = NanotronVersion::of_2024_12;
  bool tp_recompute_allgather = true;  // else column-parallel linears keep their gathered input
  bool z_loss = false;                 // `z_loss_enabled`
  bool log_attn_probs = true;          // of Qwen2Config: log-sum-exps stay until the step ends
  friend bool operator==(const NanotronSettings&, const NanotronSettings&) = default;
};

struct RuntimeCode;      // cost_model/question/runtime_code.hpp
struct RecordedProgram;  // cost_model/program/recorded.hpp

/// Who runs, with its settings. Those of others are as they are here, which changes nothing.
struct RuntimeSpec {
  Runtime kind = Runtime::megatron;
  const RuntimeCode* other = nullptr;  // one that is not in the list, instead; it must stay alive
  std::shared_ptr<const RecordedProgram> recorded =
      {};  // its step as it ran, where it was recorded
  AttnImplementation attn_implementation = AttnImplementation::sdpa;  // of Transformers' layers
  MegatronSettings megatron;
  Fsdp2Settings fsdp2;
  DeepspeedSettings deepspeed;
  DdpSettings ddp;
  ZeroPaperSettings zero_paper;
  ZeroplanSettings zeroplan;
  NanotronSettings nanotron;
  friend bool operator==(const RuntimeSpec&, const RuntimeSpec&) = default;
};

}  // namespace zeroplan
