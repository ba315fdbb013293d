// What do axolotl, LLaMA-Factory and training scripts say beside the Trainer's arguments? Front
// doors: as_trainer_arguments, refuse_adapters, take_sample_length.
#include "presets/configuration/fine_tuning.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

bool has_key(const std::vector<Entry>& entries, std::string_view key) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const Entry& entry) { return entry.key == key; });
}

bool is_axolotl(const std::vector<Entry>& entries) {
  return has_key(entries, "base_model") &&
         (has_key(entries, "micro_batch_size") || has_key(entries, "sequence_len"));
}

bool is_llama_factory(const std::vector<Entry>& entries) {
  return has_key(entries, "finetuning_type") || has_key(entries, "cutoff_len") ||
         (has_key(entries, "stage") && has_key(entries, "model_name_or_path"));
}

bool is_off(const std::optional<std::string>& value) {
  return !value || value->empty() || lower_case(*value) == "false" || *value == "0" ||
         lower_case(*value) == "none";
}

void rename(std::vector<Entry>& entries, std::string_view from, std::string_view to) {
  for (Entry& entry : entries) {
    if (entry.key == from) entry.key = to;
  }
}

void put_default(std::vector<Entry>& entries, std::string_view key, ConfigValue value) {
  if (!has_key(entries, key)) entries.push_back({std::string(key), std::move(value)});
}

// Meshes that axolotl makes, and what it casts.
void read_axolotl(std::vector<Entry>& entries, std::string_view where) {
  Entries own(entries, where);
  for (const char* key :
       {"tensor_parallel_size", "context_parallel_size", "sequence_parallel_degree",
        "dp_replicate_size", "expert_parallel_size"}) {
    const auto size = own.text(key);
    if (!size || size == "1") continue;
    own.fail(
        fmt::format("{} {}: such a mesh is not read: give --runtime fsdp2 with --tp, --cp, --ep "
                    "or --hsdp",
                    key, *size));
  }
  const auto bf16 = own.text("bf16");
  if (bf16 == "full") own.fail("bf16 full: weights without an fp32 copy are not modelled");
  for (Entry& entry : entries) {
    if (entry.key == "bf16" && entry.value == "auto") entry.value = true;
    if (entry.key == "gradient_checkpointing" && entry.value == "offload") {
      own.fail("gradient_checkpointing offload: not modelled outside DeepSpeed");
    }
  }
  put_default(entries, "micro_batch_size", 1);
  rename(entries, "micro_batch_size", "per_device_train_batch_size");
  rename(entries, "optimizer", "optim");
  rename(entries, "sequence_len", "max_seq_length");
  rename(entries, "base_model", "model_name_or_path");
  rename(entries, "fsdp_version", "fsdp_config.version");
  const bool configured = std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.key.starts_with("fsdp_config.");
  });
  if (configured) put_default(entries, "fsdp", "true");
}

void read_llama_factory(std::vector<Entry>& entries, std::string_view where) {
  const Entries own(entries, where);
  const std::string type = own.text("finetuning_type").value_or("lora");
  if (type != "full") {
    own.fail(
        fmt::format("finetuning_type {}{}: adapters and frozen weights are not modelled, full "
                    "alone is",
                    type, own.has("finetuning_type") ? "" : ", LLaMA-Factory's own"));
  }
  const std::string stage = own.text("stage").value_or("sft");
  if (stage != "sft" && stage != "pt") {
    own.fail(fmt::format("stage {}: more than one model takes part, which is not modelled", stage));
  }
  if (!is_off(own.text("pure_bf16"))) {
    own.fail("pure_bf16: weights without an fp32 copy are not modelled");
  }
  const bool checkpoints = is_off(own.text("disable_gradient_checkpointing"));
  std::erase_if(entries, [](const Entry& entry) {
    return entry.key == "finetuning_type" || entry.key == "stage" || entry.key == "pure_bf16" ||
           entry.key == "disable_gradient_checkpointing";
  });
  put_default(entries, "gradient_checkpointing", checkpoints);
  put_default(entries, "cutoff_len", 2048);
}

}  // namespace

bool is_of_fine_tuner(const std::vector<Entry>& entries) {
  return is_axolotl(entries) || is_llama_factory(entries);
}

std::vector<Entry> as_trainer_arguments(std::vector<Entry> entries, std::string_view where) {
  refuse_adapters(Entries(entries, where));
  if (is_axolotl(entries)) {
    read_axolotl(entries, where);
  } else if (is_llama_factory(entries)) {
    read_llama_factory(entries, where);
  }
  return entries;
}

void refuse_adapters(const Entries& entries) {
  constexpr std::string_view keys[] = {
      "adapter",          "use_peft",   "use_lora",    "lora_enable",         "lora_r",
      "lora_rank",        "lora_alpha", "lora_target", "load_in_4bit",        "load_in_8bit",
      "quantization_bit", "q_lora",     "peft_method", "unfrozen_parameters", "freeze_backbone"};
  const auto said = entries.text("use_peft");
  const bool switched_off = said && is_off(said);  // which the rest then waits for
  for (const std::string_view key : keys) {
    const auto value = entries.text(key);
    if (is_off(value) && !(value && value->empty())) continue;
    if (switched_off && key.starts_with("lora_")) continue;
    entries.fail(
        fmt::format("{}{}: adapters, frozen and quantized weights are not modelled; all "
                    "weights are trained where the file has no such key",
                    key, value->empty() ? "" : " " + *value));
  }
}

void require_batch_of_trainer(const Entries& entries) {
  for (const char* key : {"batch_size", "train_batch_size", "per_gpu_train_batch_size"}) {
    if (!entries.has(key) || entries.has("per_device_train_batch_size")) continue;
    entries.fail(
        fmt::format("{}: the Trainer has no such argument, and code of its own is not read: "
                    "give the options",
                    key));
  }
}

std::optional<std::int64_t> take_sample_length(Entries& entries) {
  constexpr std::string_view keys[] = {"max_seq_length", "max_length", "model_max_length",
                                       "cutoff_len", "block_size"};
  std::optional<std::int64_t> length;
  std::string_view first;
  for (const std::string_view key : keys) {
    const auto own = entries.take_count(key);
    if (own && length && *own != *length) {
      entries.fail(
          fmt::format("{} {} and {} {} are two lengths of a sample", first, *length, key, *own));
    }
    if (own && !length) first = key;
    if (own) length = own;
  }
  return length;
}

}  // namespace zeroplan
