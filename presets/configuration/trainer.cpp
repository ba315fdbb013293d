// How do the arguments of Hugging Face's Trainer say a layout? Front doors: to_trainer,
// from_trainer.
#include <fmt/format.h>

#include <algorithm>

#include "presets/configuration/fine_tuning.hpp"
#include "presets/configuration/mapping.hpp"
#include "presets/configuration/trainer_entries.hpp"
#include "presets/configuration/trainer_fsdp.hpp"

namespace zeroplan {
namespace {

constexpr std::string_view nested = "deepspeed.";
constexpr const char* micro_batch_key = "per_device_train_batch_size";
constexpr const char* steps_key = "gradient_accumulation_steps";
constexpr std::int64_t default_micro_batch = 8;

struct OptimizerName {
  OptimizerKind ours;
  std::string_view theirs;
};
constexpr OptimizerName optimizers[] = {{OptimizerKind::adam, "adamw_torch"},
                                        {OptimizerKind::sgd, "sgd"},
                                        {OptimizerKind::adam8bit, "adamw_bnb_8bit"}};

// The Trainer makes the optimizer itself.
bool is_said_by_trainer(const Entry& entry) {
  return entry.key == "optimizer.type";
}

// A switch, left in the entries where it is neither yes nor no.
std::optional<bool> read_switch(Entries& entries, std::string_view key) {
  if (entries.take_if(key, {"true", "yes", "t", "y", "1"})) return true;
  if (entries.take_if(key, {"false", "no", "f", "n", "0"})) return false;
  return std::nullopt;
}

// Whether activations are checkpointed, which the older and the newer name say alike.
bool read_checkpointing(Entries& entries) {
  const auto newer = read_switch(entries, "activation_checkpointing");
  return read_switch(entries, "gradient_checkpointing").value_or(newer.value_or(false));
}

// The optimizer; empty where it is one that is not known.
std::optional<std::string> read_optimizer(Entries& entries) {
  const auto named =
      entries.take_if("optim", {"adamw_torch", "adamw_torch_fused", "sgd", "adamw_bnb_8bit"});
  if (entries.has("optim")) return std::nullopt;
  return named == "sgd" ? "sgd" : named == "adamw_bnb_8bit" ? "adam8bit" : "adam";
}

// How the model is made to attend: by Transformers' name, or as axolotl, LLaMA-Factory and ms-swift
// say it. Empty where that is not said, or left in the entries where it is not known.
std::optional<std::string> read_attention(Entries& entries) {
  struct Spelling {
    std::string_view key, theirs, ours;
  };
  constexpr Spelling names[] = {{"attn_implementation", "flash_attention_2", "flash_attention_2"},
                                {"attn_implementation", "sdpa", "sdpa"},
                                {"attn_implementation", "eager", "eager"},
                                {"flash_attention", "true", "flash_attention_2"},
                                {"flash_attn", "fa2", "flash_attention_2"},
                                {"flash_attn", "sdpa", "sdpa"},
                                {"attn_impl", "flash_attn", "flash_attention_2"},
                                {"attn_impl", "flash_attention_2", "flash_attention_2"},
                                {"attn_impl", "sdpa", "sdpa"}};
  for (const Spelling& name : names) {
    if (entries.take_if(name.key, {name.theirs})) return std::string(name.ours);
  }
  return std::nullopt;
}

// The options that say so.
std::vector<TypedOption> attention_options(Entries& entries) {
  const std::optional<std::string> said = read_attention(entries);
  if (!said || said == name_of(AttnImplementation::sdpa)) return {};
  if (said == "eager") return {{"--attention", std::string(name_of(AttentionKernel::unfused))}};
  return {{"--set", fmt::format("attn_implementation={}", *said)}};
}

std::vector<Entry> take_deepspeed(Entries& entries) {
  std::vector<Entry> own;
  std::vector<Entry> rest;
  for (const Entry& entry : entries.list()) {
    if (entry.key.starts_with(nested)) {
      own.push_back({entry.key.substr(nested.size()), entry.value});
    } else {
      rest.push_back(entry);
    }
  }
  entries = Entries(std::move(rest), entries.where());
  return own;
}

// Puts an argument of the Trainer where DeepSpeed's file says "auto" or nothing; two values are
// refused (integrations/deepspeed.py HfTrainerDeepSpeedConfig fill_match). `given`: the argument,
// empty where it is at its default.
void fill(std::vector<Entry>& file,
          std::string_view key,
          const std::optional<ConfigValue>& given,
          const ConfigValue& otherwise,
          const Entries& entries) {
  const auto found =
      std::find_if(file.begin(), file.end(), [&](const Entry& entry) { return entry.key == key; });
  if (found == file.end()) {
    file.push_back({std::string(key), given.value_or(otherwise)});
  } else if (found->value == "auto") {
    found->value = given.value_or(otherwise);
  } else if (given && found->value != *given) {
    entries.fail(fmt::format("DeepSpeed's {} is {}, and the Trainer's argument is {}", key,
                             found->value.dump(), given->dump()));
  }
}

template <class T>
std::optional<ConfigValue> value_of(const std::optional<T>& given) {
  return given ? std::optional<ConfigValue>(*given) : std::nullopt;
}

ImportedConfiguration with_deepspeed(Entries& entries, std::vector<Entry> file) {
  // train_batch_size follows from the others, as the norm that gradients are clipped to does from
  // max_grad_norm.
  std::erase_if(file, [](const Entry& entry) {
    return entry.value == "auto" &&
           (entry.key == "train_batch_size" || entry.key == "gradient_clipping");
  });
  const auto put = [&](std::string_view key, const auto& given, const auto& otherwise) {
    fill(file, key, value_of(given), ConfigValue(otherwise), entries);
  };
  put("train_micro_batch_size_per_gpu", entries.take_count(micro_batch_key), default_micro_batch);
  put("gradient_accumulation_steps", entries.take_count(steps_key), std::int64_t{1});
  put("bf16.enabled", read_switch(entries, "bf16"), false);
  put("fp16.enabled", read_switch(entries, "fp16"), false);
  const bool makes_optimizer = std::none_of(file.begin(), file.end(), is_said_by_trainer);
  ImportedConfiguration imported = from_deepspeed(Entries(std::move(file), entries.where()));
  const auto add = [&](std::string_view flag, std::string_view value) {
    imported.options.push_back({std::string(flag), std::string(value)});
  };
  // The Trainer has no pipeline and none of the other things that code may add.
  for (const TypedOption& option : imported.left_open) {
    if (option.flag != "--optimizer") add(option.flag, option.value);
  }
  imported.left_open.clear();
  add("--recompute", read_checkpointing(entries) ? "full" : "none");
  const auto optimizer = read_optimizer(entries);
  if (makes_optimizer && optimizer) add("--optimizer", *optimizer);
  imported.format = name_of(ConfigurationFormat::trainer);
  add_left_over(imported, entries);
  return imported;
}

ImportedConfiguration without_deepspeed(Entries& entries) {
  TrainerFsdp fsdp = read_trainer_fsdp(entries);
  Meaning meaning(fsdp.shards ? Runtime::fsdp2 : Runtime::ddp);
  for (const char* flag : {"--tp", "--pp", "--vpp", "--cp", "--ep", "--etp"}) {
    meaning.say(flag, "1");
  }
  meaning.say("--zero", name_of(fsdp.zero));
  meaning.say("--schedule", "1f1b");
  meaning.say("--sequence-parallel", "off");
  meaning.say("--offload", fsdp.offloads ? "parameters" : "none");
  meaning.say("--micro-batch", entries.take_count(micro_batch_key).value_or(default_micro_batch));
  meaning.say("--gradient-accumulation", entries.take_count(steps_key).value_or(1));
  const bool bf16 = read_switch(entries, "bf16").value_or(false);
  const bool fp16 = read_switch(entries, "fp16").value_or(false);
  meaning.say("--precision", bf16 ? "bf16" : fp16 ? "fp16" : "fp32");
  meaning.say("--recompute", read_checkpointing(entries) || fsdp.checkpoints ? "full" : "none");
  meaning.say_if("--optimizer", read_optimizer(entries));
  if (fsdp.shards) meaning.set("layers", name_of(LayerCode::huggingface));
  for (std::string& note : fsdp.notes) meaning.note(std::move(note));
  meaning.about_model(entries.take_all({"fsdp_config.transformer_layer_cls_to_wrap"}));
  return meaning.finish(ConfigurationFormat::trainer, entries);
}

// The word of `fsdp` is what Transformers 4.57 reads, reshard_after_forward what 5.23 does. The
// Trainer's own checkpointing gathers parameters once more (training_args.py says so).
void add_fsdp(std::vector<Entry>& out, const Problem& p) {
  const Layout& l = p.layout;
  const bool reshards = l.zero == ZeroStage::parameters;
  out.push_back({"fsdp", reshards ? "full_shard auto_wrap" : "shard_grad_op auto_wrap"});
  if (const auto layers = layers_to_name(p.model); !layers.empty()) {
    out.push_back({"fsdp_config.transformer_layer_cls_to_wrap", std::string(layers)});
  }
  out.push_back({"fsdp_config.version", 2});
  out.push_back({"fsdp_config.reshard_after_forward", reshards});
  out.push_back({"fsdp_config.cpu_offload", l.offload == Offload::parameters});
  out.push_back({"fsdp_config.activation_checkpointing", l.recompute == Recompute::full});
}

}  // namespace

std::vector<Entry> to_trainer(const Problem& p) {
  std::vector<Entry> out{{micro_batch_key, p.layout.micro_batch},
                         {steps_key, micro_batches(p)},
                         {"bf16", p.training.precision == Precision::bf16},
                         {"fp16", p.training.precision == Precision::fp16},
                         {"gradient_checkpointing", p.layout.recompute == Recompute::full &&
                                                        p.runtime.kind != Runtime::fsdp2}};
  for (const OptimizerName& name : optimizers) {
    if (name.ours == p.training.optimizer) out.push_back({"optim", name.theirs});
  }
  if (p.runtime.kind == Runtime::fsdp2) add_fsdp(out, p);
  if (p.runtime.kind != Runtime::deepspeed) return out;
  for (Entry& entry : to_deepspeed(p)) {
    if (!is_said_by_trainer(entry)) {
      out.push_back({std::string(nested) + entry.key, std::move(entry.value)});
    }
  }
  return out;
}

ImportedConfiguration from_trainer(Entries given) {
  refuse_adapters(given);
  require_batch_of_trainer(given);
  Entries entries = with_named_files(given);
  const auto length = take_sample_length(entries);
  const std::vector<TypedOption> attention = attention_options(entries);
  std::vector<std::string> model =
      entries.take_all({"model_name_or_path", "model_name", "fsdp_transformer_layer_cls_to_wrap"});
  std::vector<Entry> deepspeed = take_deepspeed(entries);
  if (!deepspeed.empty() && read_trainer_fsdp(entries).asked) {
    entries.fail("deepspeed and fsdp: the Trainer refuses them together");
  }
  ImportedConfiguration result = deepspeed.empty() ? without_deepspeed(entries)
                                                   : with_deepspeed(entries, std::move(deepspeed));
  result.options.insert(result.options.end(), attention.begin(), attention.end());
  if (length) result.options.push_back({"--seq", std::to_string(*length)});
  result.about_model.insert(result.about_model.begin(), model.begin(), model.end());
  return result;
}

}  // namespace zeroplan
