// How was Megatron-Core set? Front door: megatron_settings.
#include <array>
#include <utility>

#include "presets/megatron_hybrid.hpp"
#include "presets/pipeline_layout.hpp"
#include "tests/accuracy/completed.hpp"
#include "tests/accuracy/problem_of_row.hpp"
#include "tests/accuracy/settings.hpp"

namespace zeroplan::accuracy {
namespace {

using Settings = std::vector<Override>;

std::string on_off(bool value) {
  return value ? "on" : "off";
}

// Transformer Engine in the dev container of Megatron-LM's tests: the revision that pyproject.toml
// pins at the commit of the golden file, by its build_tools/VERSION.txt.
constexpr std::array<std::pair<std::string_view, std::string_view>, 22> pinned_engines{{
    {"f57304256e", "2.7"},  {"adc69dba2d", "2.8"},  {"11debfa7b4", "2.11"}, {"92f052b8e5", "2.11"},
    {"6de6362904", "2.12"}, {"1666b458c8", "2.12"}, {"22c69fa675", "2.12"}, {"f098fe8482", "2.14"},
    {"9718f7d787", "2.14"}, {"a53107c006", "2.15"}, {"b2a8ec7458", "2.15"}, {"be2b2cd70d", "2.15"},
    {"6e091e1b68", "2.16"}, {"a50252b6ad", "2.16"}, {"4828d651e7", "2.16"}, {"7e6a045a2a", "2.18"},
    {"cd4afffa64", "2.18"}, {"7d08fcabaa", "2.18"}, {"0ee415bbf9", "2.18"}, {"e79110c67b", "2.18"},
    {"93ebf8d72f", "2.17"}, {"46a169647f", "2.17"},
}};

// "2.11" of "... TE 2.11.0, ...", the pin of a tested commit, or nothing.
Text engine_version(const Row& row) {
  for (const auto& [commit, engine] : pinned_engines) {
    if (contains(row.version, commit)) return std::string(engine);
  }
  const std::size_t found = row.version.find("TE ");
  if (found == std::string::npos) return std::nullopt;
  const std::size_t first = found + 3;
  const std::size_t minor = row.version.find('.', first);
  if (minor == std::string::npos) return std::nullopt;
  const std::size_t end = row.version.find_first_not_of("0123456789", minor + 1);
  return row.version.substr(first, end == std::string::npos ? end : end - first);
}

// cuDNN's kernel is Transformer Engine's choice on H100 alone: the rows of A100 and GB200 hold the
// second copy of the attention output that the flash-attn package makes.
std::string attention_backend(const Row& row) {
  std::string asked = row.argument("attention-backend", "auto");
  if (asked == "flash" || asked == "fused") return asked;
  return row.gpu == "H100" ? "fused" : "flash";
}

// The environment is not in the rows. Deterministic mode needs CUBLAS_WORKSPACE_CONFIG, and the
// cases that run without it set none, except those of MoE with context parallelism and of hybrid
// models (model_config.yaml of every case at adc69dba2d and 93ebf8d72f, of hybrids at d98e8a64dd).
bool sets_workspace(const Row& row) {
  return row.has_argument("deterministic-mode") ||
         (row.family == "mcore-ci-moe" && row.cp.value_or(1) > 1) ||
         row.family == "mcore-ci-hybrid";
}

// core_transformer_config_from_args reads one of two switches.
bool fuses_activation(const Row& row) {
  return !row.has_argument(row.has_argument("swiglu") ? "no-bias-swiglu-fusion"
                                                      : "no-bias-gelu-fusion");
}

// Arguments whose value is a setting of the same meaning.
constexpr std::array<std::pair<const char*, const char*>, 17> copied{{
    {"megatron-fsdp-main-grads-dtype", "megatron_fsdp_main_grads_dtype"},
    {"megatron-fsdp-grad-comm-dtype", "megatron_fsdp_grad_comm_dtype"},
    {"cuda-graph-impl", "cuda_graph_impl"},
    {"cross-entropy-fusion-impl", "cross_entropy_fusion_impl"},
    {"cp-comm-type", "cp_comm_type"},
    {"fp8-recipe", "fp8_recipe"},
    {"outer-dp-sharding-strategy", "outer_dp_sharding_strategy"},
    {"num-layers-at-start-in-bf16", "num_layers_at_start_in_bf16"},
    {"num-layers-at-end-in-bf16", "num_layers_at_end_in_bf16"},
    {"microbatch-group-size-per-virtual-pipeline-stage", "microbatch_group_size_per_vp_stage"},
    {"exp-avg-dtype", "exp_avg_dtype"},
    {"exp-avg-sq-dtype", "exp_avg_sq_dtype"},
    {"decoder-first-pipeline-num-layers", "decoder_first_pipeline_num_layers"},
    {"decoder-last-pipeline-num-layers", "decoder_last_pipeline_num_layers"},
    {"moe-pad-expert-input-to-capacity", "moe_pad_expert_input_to_capacity"},
    {"activation-offload-fraction", "activation_offload_fraction"},
    {"min-offloaded-tensor-size", "min_offloaded_tensor_size"},
}};

// Rows that carry every launch argument: what is absent is at Megatron's default.
void add_launch_arguments(const Row& row, Settings& set) {
  if (row.argument("transformer-impl", "transformer_engine") == "local") {
    const bool alone = contains(row.version, "without Transformer Engine");
    set.emplace_back("transformer_engine", alone ? "none" : "local");
  }
  set.emplace_back("attention_backend", attention_backend(row));
  set.emplace_back("hidden_dropout", row.argument("hidden-dropout", "0.1"));
  set.emplace_back("attention_dropout", row.argument("attention-dropout", "0.1"));
  const auto flag = [&](const char* key, bool value) { set.emplace_back(key, on_off(value)); };
  flag("cross_entropy_loss_fusion", row.has_argument("cross-entropy-loss-fusion"));
  flag("gradient_accumulation_fusion", !row.has_argument("no-gradient-accumulation-fusion"));
  flag("bias_activation_fusion", fuses_activation(row));
  flag("masked_softmax_fusion", !row.has_argument("no-masked-softmax-fusion"));
  flag("moe_grouped_gemm", row.has_argument("moe-grouped-gemm"));
  flag("moe_permute_fusion", row.has_argument("moe-permute-fusion"));
  flag("tp_comm_overlap", row.has_argument("tp-comm-overlap"));
  flag("overlap_grad_reduce", row.has_argument("overlap-grad-reduce"));
  flag("overlap_param_gather", row.has_argument("overlap-param-gather"));
  flag("create_attention_mask_in_dataloader",
       !row.has_argument("no-create-attention-mask-in-dataloader"));
  flag("grad_reduce_in_bf16", row.has_argument("grad-reduce-in-bf16"));
  flag("use_precision_aware_optimizer", row.has_argument("use-precision-aware-optimizer"));
  flag("account_for_embedding_in_pipeline_split",
       row.has_argument("account-for-embedding-in-pipeline-split"));
  flag("account_for_loss_in_pipeline_split",
       row.has_argument("account-for-loss-in-pipeline-split"));
  flag("use_fused_weighted_squared_relu", row.has_argument("use-fused-weighted-squared-relu"));
  flag("mtp_use_repeated_layer", row.has_argument("mtp-use-repeated-layer"));
  if (row.has_argument("mtp-num-layers")) {
    set.emplace_back("mtp_num_layers", row.argument("mtp-num-layers", ""));
  }
  if (row.has_argument("hybrid-layer-pattern")) {
    const PipelineLayout said = layout_of_pattern(row.argument("hybrid-layer-pattern", ""));
    set.emplace_back("mtp_num_layers", std::to_string(said.mtp_modules));
    if (said.layers.size() > 1) {
      set.emplace_back("pipeline_model_parallel_layout", pipeline_layout_text(said));
    }
  }
  if (row.has_argument("fp8-param-gather")) flag("fp8_param_gather", true);
  if (row.has_argument("first-last-layers-bf16")) flag("first_last_layers_bf16", true);
  if (sets_workspace(row)) set.emplace_back("cublas_workspace_kib", "32768");
  if (row.has_argument("delta-offload-bytes-across-pp-ranks")) {
    throw Skip("offloads other amounts on each rank");
  }
  if (row.has_argument("fine-grained-activation-offloading")) {
    set.emplace_back("offload_modules", with_commas(row.argument("offload-modules", "")));
  }
  for (const auto& [argument, key] : copied) {
    if (row.has_argument(argument)) set.emplace_back(key, row.argument(argument, ""));
  }
}

// Megatron-LM of the papers of 2021 and 2022: before Transformer Engine, dropout at its default.
void add_early_defaults(Settings& set) {
  set.emplace_back("transformer_engine", "none");
  set.emplace_back("megatron_core", "0.1");
  set.emplace_back("gradient_accumulation_fusion", "off");
  set.emplace_back("scatter_gather_tensors_in_pipeline", "on");
  set.emplace_back("hidden_dropout", "0.1");
  set.emplace_back("attention_dropout", "0.1");
}

// What rows without arguments say in words.
void add_stated_facts(const Row& row, Settings& set) {
  if (row.family == "simumax-b200") {
    // Its run_pretrain_{llama3,deepseekv2}.sh give the second and third flag.
    set.emplace_back("attention_backend", "fused");
    set.emplace_back("create_attention_mask_in_dataloader", "off");
    set.emplace_back("moe_permute_fusion", "on");
    // PyTorch 2.10 of container 26.01 does not know the B200 yet: 8,320 KiB, not 32 MiB.
    if (contains(row.version, "torch 2.10.0a0")) {
      set.emplace_back("cublas_workspace_kib", "8320");
    }
  }
  if (contains(row.notes, "Cross-entropy fusion on")) {
    set.emplace_back("cross_entropy_loss_fusion", "on");
    set.emplace_back("cross_entropy_fusion_impl", "te");
  }
  if (contains(row.notes, "context parallel (a2a")) set.emplace_back("cp_comm_type", "a2a");
  if (row.model.experts && row.model.experts->padded_to_capacity) {
    set.emplace_back("moe_pad_expert_input_to_capacity", "on");
  }
  if (row.sharding.gradient_type.value_or("").starts_with("bf16")) {
    set.emplace_back("grad_reduce_in_bf16", "on");
  }
}

void add_recompute(const RecomputeChoice& recompute, Settings& set) {
  if (recompute.method) set.emplace_back("recompute_method", *recompute.method);
  if (recompute.layers) {
    set.emplace_back("recompute_num_layers", std::to_string(*recompute.layers));
  }
  std::string modules;
  for (const std::string& module : recompute.modules) {
    modules += (modules.empty() ? "" : ",") + (module == "core attention" ? "core_attn" : module);
  }
  if (!modules.empty()) set.emplace_back("recompute_modules", modules);
}

}  // namespace

std::vector<Override> megatron_settings(const Row& row) {
  if (contains(row.optimizer.value_or(""), "per recipe")) {
    throw Skip("optimizer precision not stated");
  }
  Settings set;
  // A padded vocabulary is already what was allocated. vTrain seems not to pad where tp is 1: there
  // alone the head takes as long as rows without alignment make it.
  const bool unpadded = row.family.starts_with("vtrain") && row.tp.value_or(1) == 1;
  if (row.model.padded_vocab || unpadded) set.emplace_back("make_vocab_size_divisible_by", "1");
  if (const Text engine = engine_version(row)) set.emplace_back("transformer_engine", *engine);
  if (row.version.starts_with("Megatron-LM 202") || row.version.starts_with("Megatron-DeepSpeed")) {
    add_early_defaults(set);
    // Both came before sequence parallelism's paper, and are on by default (Megatron-LM 83b1e42 of
    // February 2022). The fused sum wants fp32 gradients, which those runs have: the paper's Figure
    // 1 draws 18 bytes a parameter of a layer, 45.56 GiB of 22B over 8 GPUs.
    if (row.version.ends_with("2022")) {
      set.emplace_back("async_tensor_model_parallel_allreduce", "on");
      set.emplace_back("gradient_accumulation_fusion", "on");
    }
  }
  if (!row.completed.empty()) {
    const Settings completed = completed_settings(row);
    set.insert(set.end(), completed.begin(), completed.end());
  } else if (row.arguments.empty()) {
    add_stated_facts(row, set);
  } else {
    add_launch_arguments(row, set);
  }
  add_recompute(row.recompute, set);
  return set;
}

}  // namespace zeroplan::accuracy
