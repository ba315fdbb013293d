// What did the recipe of a row set? Front doors: complete_fields, completed_settings.
#include "tests/accuracy/completed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <regex>
#include <utility>

#include "tests/accuracy/problem_of_row.hpp"

namespace zeroplan::accuracy {
namespace {

std::string fact(const Row& row, const char* key) {
  const auto found = row.completed.find(key);
  return found == row.completed.end() ? "" : found->second;
}

bool is_on(const Row& row, const char* key) {
  return fact(row, key) == "true";
}

bool is_set(const Row& row, const char* key) {
  return !fact(row, key).empty();
}

bool is_deepseek(const Row& row) {
  return row.model.latent.has_value();
}

// Settings whose value is "true" or "false" in the recipe, and their names here.
constexpr std::array<std::pair<const char*, const char*>, 14> flags{{
    {"mixed_precision.fp8_param_gather", "fp8_param_gather"},
    {"mixed_precision.fp8_dot_product_attention", "fp8_dot_product_attention"},
    {"use_precision_aware_optimizer", "use_precision_aware_optimizer"},
    {"gradient_accumulation_fusion", "gradient_accumulation_fusion"},
    {"use_fused_weighted_squared_relu", "use_fused_weighted_squared_relu"},
    {"use_transformer_engine_op_fuser", "use_transformer_engine_op_fuser"},
    {"comm_overlap.overlap_moe_expert_parallel_comm", "overlap_moe_expert_parallel_comm"},
    {"comm_overlap.delay_wgrad_compute", "delay_wgrad_compute"},
    {"moe_permute_fusion", "moe_permute_fusion"},
    {"moe_grouped_gemm", "moe_grouped_gemm"},
    {"ddp.overlap_grad_reduce", "overlap_grad_reduce"},
    {"ddp.overlap_param_gather", "overlap_param_gather"},
    {"account_for_embedding_in_pipeline_split", "account_for_embedding_in_pipeline_split"},
    {"account_for_loss_in_pipeline_split", "account_for_loss_in_pipeline_split"},
}};

// "['embedding', 'decoder']|['decoder', 'mtp', 'loss']" as Et|tmL.
std::string layout_letters(std::string text) {
  constexpr std::array<std::pair<const char*, const char*>, 5> words{
      {{"embedding", "E"}, {"decoder", "t"}, {"mtp", "m"}, {"loss", "L"}, {"[\\[\\]', ]", ""}}};
  if (!contains(text, "embedding")) return text;
  for (const auto& [word, letter] : words)
    text = std::regex_replace(text, std::regex(word), letter);
  return text;
}

bool trains_prediction_modules(const Row& row) {
  const std::string modules = fact(row, "mtp_num_layers");
  return !modules.empty() && modules != "0" && !contains(row.id, "woMTP");
}

// DeepSeek's 16 chunks: 25.09 sets them in code (src/megatron/bridge/recipes/deepseek/
// deepseek_v3.py @v0.1.0rc4 model_config).
std::string pipeline_layout(const Row& row) {
  std::string layout = layout_letters(fact(row, "pipeline_model_parallel_layout"));
  if (layout.empty() && is_deepseek(row) && *row.pp * *row.vpp == 16) layout = "Et*4|(t*4|)*14tmL";
  if (!trains_prediction_modules(row)) std::erase(layout, 'm');
  return layout;
}

bool starts_with_grace(const Row& row) {
  return row.gpu->starts_with("GB");
}

bool in_container(const Row& row, std::string_view container) {
  return row.version.ends_with(container);
}

// GPT-OSS's recipe names DeepEP and does not use it. Its workload's table has another one for some
// (scripts/performance/configs/gpt_oss/gpt_oss_workload_base_configs.py @v0.4.0, @v0.5.0).
std::string gpt_oss_backend(const Row& row) {
  if (fact(row, "moe_token_dispatcher_type") == "flex") {
    return fact(row, "moe_flex_dispatcher_backend");
  }
  const bool in_04 = contains(row.version, "26.04") && !row.gpu->starts_with("H");
  const bool in_06 = contains(row.version, "26.06") && *row.gpu == "B300";
  return (in_04 && *row.gpu != "GB300") || in_06 ? "hybridep" : "";
}

// Whose kernels dispatch tokens. Up to 26.02 a recipe hands the name to a function whose work is
// not in the row: there it is what the workload's table says (scripts/performance/configs/*/
// *workload_base_configs.py @v0.2.0, @v0.3.0). The function refuses DeepEP on GB200 and GB300
// (src/megatron/bridge/training/flex_dispatcher_backend.py).
std::string flex_backend(const Row& row) {
  if (row.model.name.starts_with("gpt-oss")) return gpt_oss_backend(row);
  std::string backend = fact(row, "moe_flex_dispatcher_backend");
  const bool hopper = row.gpu->starts_with("H");
  const bool large_qwen = row.model.name.starts_with("qwen3-235b");
  if (backend.empty() && row.model.experts) {
    if (in_container(row, "25.11")) {
      backend = starts_with_grace(row) ? "hybridep" : is_deepseek(row) && hopper ? "deepep" : "";
    } else if (in_container(row, "26.02")) {
      const bool none = *row.gpu == "B200" || (large_qwen && !starts_with_grace(row));
      backend = is_deepseek(row) ? "hybridep" : none ? "" : hopper ? "deepep" : "hybridep";
    }
  }
  return backend == "deepep" && starts_with_grace(row) ? "" : backend;
}

void add_dispatcher(const Row& row, std::vector<Override>& set) {
  const std::string backend = flex_backend(row);
  if (backend.empty()) return;
  set.emplace_back("moe_token_dispatcher_type", "flex");
  set.emplace_back("moe_flex_dispatcher_backend", backend);
}

std::string_view container_of(const Row& row) {
  return std::string_view(row.version).substr(row.version.rfind(' ') + 1);
}

// PYTORCH_CUDA_ALLOC_CONF, which the launcher sets for some (25.09: scripts/performance/
// setup_experiment.py @v0.1.0rc4; to 26.04: perf_plugins.py @v0.2.0, @v0.3.0, @v0.4.0), then for
// all but Llama under Megatron-FSDP (utils/executors.py, perf_plugins.py @v0.5.0; the recipes
// @v0.6.0).
bool expands_segments(const Row& row) {
  const std::string_view container = container_of(row);
  const bool llama = row.model.name.starts_with("llama");
  const bool fsdp = is_on(row, "use_megatron_fsdp");
  if (container >= "26.06") return !(llama && fsdp);
  const std::string recipe = fact(row, "fp8_recipe");
  const bool eight_bit = recipe == "fp8_mx" || recipe == "fp8_cs";
  const bool since_04 = container >= "26.04";
  if (row.model.name == "llama3.1-405b") {
    return eight_bit && (*row.gpu == "GB200" || (since_04 && *row.gpu == "GB300"));
  }
  if (is_deepseek(row) && row.model.name.starts_with("deepseek-v3")) {
    if (container == "25.09") {
      return recipe == "bf16" && *row.gpu == "GB200" && !contains(row.id, "tokendrop");
    }
    return container >= "26.02" && (*row.gpu == "H100" || (since_04 && *row.gpu == "GB200"));
  }
  return since_04 && row.model.name.starts_with("qwen3-next") && *row.gpu == "H100" &&
         recipe == "fp8_cs";
}

// Not among a row's settings: DeepSeek-V3's recipes on GB200 and GB300 and GPT-OSS's on GB300 set
// it with mxfp8 (26.06: scripts/performance/configs/deepseek/deepseek_llm_pretrain.py, gpt_oss/
// gpt_oss_llm_pretrain.py @v0.5.0; 26.08: src/megatron/bridge/perf_recipes/deepseek/gb200, gb300,
// gpt_oss/common.py @v0.6.0), which those of the other models and GPUs do not.
bool narrows_output_layer(const Row& row) {
  const bool known = is_deepseek(row) || row.model.name.starts_with("gpt-oss");
  return known && starts_with_grace(row) && container_of(row) >= "26.06" &&
         fact(row, "fp8_recipe") == "fp8_mx";
}

// The recipe's own words: 25.09 says whether, later ones which; a scope without an implementation
// is none.
void add_graphs(const Row& row, std::vector<Override>& set) {
  const std::string impl = fact(row, "cuda_graph_impl");
  const std::string scope = fact(row, "cuda_graph_scope");
  if (is_on(row, "enable_cuda_graph")) {
    set.emplace_back("cuda_graph_impl", "local");
  } else if (!impl.empty()) {
    set.emplace_back("cuda_graph_impl", impl);
    if (!scope.empty() && impl != "none") {
      set.emplace_back("cuda_graph_scope", with_commas(scope));
    }
  }
}

}  // namespace

void complete_fields(Row& row) {
  if (row.completed.empty() || !row.complete) return;
  const std::string recipe = fact(row, "fp8_recipe");
  row.precision = recipe == "bf16" ? "bf16" : recipe == "nvfp4" ? "nvfp4" : "fp8";
  row.optimizer = "adam";
  // Selective recompute of no module.
  if (row.recompute.kind == "selective" && row.recompute.modules.empty()) {
    row.recompute.kind = "none";
  }
  row.etp = 1;
}

std::vector<Override> completed_settings(const Row& row) {
  std::vector<Override> set{{"container", std::string(container_of(row))},
                            {"attention_backend", "fused"},
                            // As the recipe says, or Megatron-Core by itself.
                            {"cross_entropy_loss_fusion", "off"},
                            {"overlap_grad_reduce", "off"},
                            {"overlap_param_gather", "off"},
                            {"expandable_segments", "off"}};
  const std::string recipe = fact(row, "fp8_recipe");
  const bool eight_bit = recipe == "fp8_mx" || recipe == "fp8_cs";
  for (const auto& [name, key] : flags) {
    const bool of_recipe = std::string_view(name).starts_with("mixed_precision");
    const std::string value = of_recipe && !eight_bit ? "" : fact(row, name);
    if (!value.empty()) set.emplace_back(key, value);
  }
  // scripts/performance/utils/helpers.py set_megatron_fsdp_overrides @v0.1.0rc4.
  if (in_container(row, "25.09") && is_on(row, "use_megatron_fsdp")) {
    set.emplace_back("init_model_with_meta_device", "on");
  }
  // 25.09's precisions set it (src/megatron/bridge/training/mixed_precision.py @v0.1.0rc4).
  if (eight_bit && !is_set(row, "mixed_precision.fp8_param_gather")) {
    set.emplace_back("fp8_param_gather", "on");
  }
  // Performance recipes reduce in 16 bits (25.09 and their _common.py); the precisions' own default
  // is fp32.
  if (!is_on(row, "ddp.grad_reduce_in_fp32")) set.emplace_back("grad_reduce_in_bf16", "on");
  // DeepSeek's recipe of 25.09 sets what later rows say.
  const bool narrow = fact(row, "exp_avg_dtype") == "<torch.bfloat16>" ||
                      (is_deepseek(row) && contains(row.version, "25.09"));
  if (narrow) {
    set.emplace_back("exp_avg_dtype", "bf16");
    set.emplace_back("exp_avg_sq_dtype", "bf16");
  }
  if (is_on(row, "mixed_precision.first_last_layers_bf16")) {
    set.emplace_back("first_last_layers_bf16", "on");
    for (const char* number : {"num_layers_at_start_in_bf16", "num_layers_at_end_in_bf16"}) {
      set.emplace_back(number, fact(row, fmt::format("mixed_precision.{}", number).c_str()));
    }
  }
  if (recipe == "fp8_mx") set.emplace_back("fp8_recipe", "mxfp8");
  if (recipe == "fp8_cs") set.emplace_back("fp8_recipe", "tensorwise");
  add_graphs(row, set);
  // Without a configuration of overlaps, buckets are as large as Megatron-Core makes them.
  const bool overlaps = std::ranges::any_of(
      row.completed, [](const auto& f) { return f.first.starts_with("comm_overlap."); });
  if (!overlaps) set.emplace_back("ddp_bucket_size", "0");
  if (narrows_output_layer(row)) set.emplace_back("fp8_output_proj", "on");
  if (expands_segments(row)) set.emplace_back("expandable_segments", "on");
  if (row.model.experts || is_set(row, "moe_token_dispatcher_type")) add_dispatcher(row, set);
  for (const char* type : {"megatron_fsdp_main_grads_dtype", "megatron_fsdp_grad_comm_dtype"}) {
    const std::string said = fact(row, fmt::format("ddp.{}", type).c_str());
    if (said == "<torch.float32>") set.emplace_back(type, "fp32");
    if (said == "<torch.bfloat16>") set.emplace_back(type, "bf16");
  }
  const std::string outer = fact(row, "ddp.outer_dp_sharding_strategy");
  if (!outer.empty()) set.emplace_back("outer_dp_sharding_strategy", outer);
  if (is_on(row, "fine_grained_activation_offloading")) {
    set.emplace_back("offload_modules", with_commas(fact(row, "offload_modules")));
    for (const char* key : {"min_offloaded_tensor_size", "activation_offload_fraction"}) {
      if (is_set(row, key)) set.emplace_back(key, fact(row, key));
    }
  }
  if (const std::string layers = fact(row, "cpu_offloading_num_layers"); !layers.empty()) {
    set.emplace_back("cpu_offloading_num_layers", layers);
  }
  if (const std::string loss = fact(row, "cross_entropy_fusion_impl"); !loss.empty()) {
    set.emplace_back("cross_entropy_loss_fusion", "on");
    set.emplace_back("cross_entropy_fusion_impl", loss);
  }
  if (is_on(row, "comm_overlap.tp_comm_overlap") && row.tp.value_or(1) > 1) {
    set.emplace_back("tp_comm_overlap", "on");
  }
  // apply_moe_token_drop: a capacity factor of 1, and padded to it.
  if (contains(row.id, "tokendrop")) set.emplace_back("moe_pad_expert_input_to_capacity", "on");
  if (trains_prediction_modules(row)) {
    set.emplace_back("mtp_num_layers", fact(row, "mtp_num_layers"));
    if (is_on(row, "mtp_use_repeated_layer")) set.emplace_back("mtp_use_repeated_layer", "on");
  }
  if (const std::string layout = pipeline_layout(row); !layout.empty()) {
    set.emplace_back("pipeline_model_parallel_layout", layout);
  }
  return set;
}

std::string family_of(const Row& row, const Problem& problem) {
  if (row.completed.empty()) return row.family;
  std::string generation = problem.cluster.gpu.architecture;
  std::ranges::transform(generation, generation.begin(), [](unsigned char letter) {
    return letter == ' ' ? '-' : static_cast<char>(std::tolower(letter));
  });
  const std::string recipe = fact(row, "fp8_recipe");
  const std::string precision = recipe == "fp8_mx" ? "mxfp8" : recipe == "fp8_cs" ? "fp8" : recipe;
  return fmt::format("nvidia-{}-{}-{}", generation, precision,
                     problem.model.state_space ? "hybrid"
                     : problem.model.moe       ? "experts"
                                               : "dense");
}

}  // namespace zeroplan::accuracy
