// How were FSDP and DeepSpeed set? Front doors: fsdp2_settings, deepspeed_settings.
#include <regex>

#include "tests/accuracy/problem_of_row.hpp"
#include "tests/accuracy/settings.hpp"

namespace zeroplan::accuracy {
namespace {

// "2025-02-06" or "2025-02": when the code that ran was current. Versions of torchtitan have no
// numbers; rows cite a commit with its date, or a document named by its month.
std::string date_of(const Row& row) {
  const std::string text = row.version + ' ' + row.source;
  if (contains(text, "bcc09297a")) return "2026-08-05";
  static const std::regex day("20[12][0-9]-[01][0-9]-[0-3][0-9]");
  static const std::regex month("(?:^|[^0-9a-f])(20[12][0-9])-?(0[1-9]|1[0-2])");
  std::smatch found;
  if (std::regex_search(text, found, day)) return found.str();
  if (!std::regex_search(text, found, month)) throw Skip("nothing dates its version");
  return found[1].str() + '-' + found[2].str();
}

// How the run was launched, by publication. The documents of H200 and GB200 print a bare torchrun,
// which leaves the allocator at its default. No command is published for the tables of December
// 2024: Table 2 (context parallel) behaves as the launch script sets it, the others do not. From
// e629fe58a (2025-08-15) the script set a name that PyTorch builds of the time may not have known:
// single machines since behave as without it, clusters as with it.
std::string expandable_segments(const Row& row) {
  if (row.gpu && (contains(*row.gpu, "H200") || contains(*row.gpu, "GB200"))) return "false";
  if (contains(row.source, "llama3_h100_202412") && !contains(row.source, "Table 2")) {
    return "false";
  }
  const bool renamed = date_of(row) >= "2025-08-15";
  return renamed && row.gpus.value_or(0) <= 8 ? "false" : "script";
}

// The experiment of March 2025 (e23bb707d) had as many chunks as the later default.
std::string loss_chunks(const Row& row) {
  return contains(row.notes, "Chunked cross entropy:") ? "8" : "0";
}

// The configurations for Blackwell compile the layers alone (models/llama3/config_registry.py
// llama3_8b_mxfp8, llama3_8b_first_85_pct_layers_nvfp4 @b5bcd76c6).
std::string compiled_components(const Row& row) {
  return contains(row.source, "bcc09297a") ? "model" : "model,loss";
}

// llm-foundry's PURE keeps parameters, gradients and states in bf16.
std::string stored_type(const Row& row) {
  return row.precision.value_or("").starts_with("bf16 PURE") ? "bf16" : "fp32";
}

// Rows of our own tracers, and of the same runs on a GPU, name every setting that they know.
void add_traced(const Row& row, std::vector<Override>& set) {
  if (!row.family.starts_with("traced-") && !row.family.starts_with("gpu-")) return;
  for (const auto& [key, value] : row.arguments) set.emplace_back(key, value);
}

// "2.14" of "PyTorch 2.14.1+cu130, torchtitan 0.3.0".
std::optional<std::string> torch_version(const Row& row) {
  constexpr std::string_view name = "PyTorch ";
  const std::size_t found = row.version.find(name);
  if (found == std::string::npos) return std::nullopt;
  const std::string version = row.version.substr(found + name.size());
  return version.substr(0, version.find('.', version.find('.') + 1));
}

}  // namespace

std::vector<Override> fsdp2_settings(const Row& row) {
  std::vector<Override> set{{"training.dtype", stored_type(row)},
                            {"training.mixed_precision_param", "bf16"}};
  // llm-foundry v0.0.4 pins flash-attn 1.0, which triton's kernel with ALiBi resembles. Its loss is
  // whole, and in one kernel (modeling_mpt.py, loss_fn fused_crossentropy), as a compiled one is.
  if (row.family == "llm-foundry") {
    set.emplace_back("flash_attention", "1");
    set.emplace_back("loss_chunks", "1");
    set.emplace_back("compile.enable", "true");
    set.emplace_back("compile.components", "loss");
    set.emplace_back("training.disable_cuda_graphs", "true");
    // amp_fp8 runs Transformer Engine's linears (llmfoundry/models/layers/fc.py).
    set.emplace_back("float8.recipe_name", "delayed");
  }
  add_traced(row, set);
  const auto version = torch_version(row);
  const bool says = row.has_argument("torch_version");
  if (version && !says) set.emplace_back("torch_version", *version);
  if (row.family != "torchtitan" && row.family != "harness") return set;
  const std::string precision = row.precision.value_or("");
  set.emplace_back("recipe_date", date_of(row));
  set.emplace_back("loss_chunks", loss_chunks(row));
  set.emplace_back("compile.enable", row.compiled ? "true" : "false");
  set.emplace_back("compile.components", compiled_components(row));
  set.emplace_back("expandable_segments", expandable_segments(row));
  if (contains(precision, "rowwise")) {
    const bool wide = contains(precision, "gw_hp");
    set.emplace_back("float8.recipe_name", wide ? "rowwise_with_gw_hp" : "rowwise");
  }
  if (row.id.ends_with("-async")) set.emplace_back("compile.enable_async_tensor_parallel", "true");
  set.emplace_back("float8.enable_fsdp_float8_all_gather",
                   contains(precision, "fp8 all-gather") ? "true" : "false");
  if (row.sharding.reshard_after_forward == "always") {
    set.emplace_back("parallelism.fsdp_reshard_after_forward", "always");
  }
  return set;
}

std::vector<Override> nanotron_settings(const Row& row) {
  std::vector<Override> set;
  add_traced(row, set);
  return set;
}

std::vector<Override> ddp_settings(const Row& row) {
  std::vector<Override> set;
  add_traced(row, set);
  return set;
}

std::vector<Override> deepspeed_settings(const Row& row) {
  std::vector<Override> set;
  const bool wide = row.sharding.gradient_type.value_or("").starts_with("fp32");
  if (wide) set.emplace_back("data_types.grad_accum_dtype", "fp32");
  if (row.framework == "megatron-deepspeed") {
    // BigScience ran DeepSpeed 0.5.x in 2021 and early 2022, with Megatron-LM's default dropout.
    set.emplace_back("version", "0.5");
    set.emplace_back("hidden_dropout", "0.1");
    set.emplace_back("attention_dropout", "0.1");
    if (contains(row.notes, "type:transformer|embedding")) {
      set.emplace_back("partition_method", "type:transformer|embedding");
    } else {
      set.emplace_back("partition_method", "type:transformer");
    }
  }
  if (row.sharding.reduce_bucket_size) {
    set.emplace_back("reduce_bucket_size", std::to_string(*row.sharding.reduce_bucket_size));
  }
  add_traced(row, set);
  return set;
}

}  // namespace zeroplan::accuracy
