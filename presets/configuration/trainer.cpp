// How do the arguments of Hugging Face's Trainer say a layout? Front doors: to_trainer,
// from_trainer.
#include <algorithm>
#include <iterator>

#include "presets/configuration/mapping.hpp"

namespace zeroplan {
namespace {

constexpr std::string_view nested = "deepspeed.";

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

// What the Trainer puts in from its own arguments where DeepSpeed's file says "auto".
bool is_filled_in(std::string_view key) {
  constexpr std::string_view keys[] = {"train_batch_size",
                                       "train_micro_batch_size_per_gpu",
                                       "gradient_accumulation_steps",
                                       "gradient_clipping",
                                       "bf16.enabled",
                                       "fp16.enabled"};
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

// Replaces what `imported` says of this flag.
void say(ImportedConfiguration& imported, std::string_view flag, std::string_view value) {
  for (TypedOption& option : imported.options) {
    if (option.flag != flag) continue;
    option.value = value;
    return;
  }
  imported.options.push_back({std::string(flag), std::string(value)});
}

ImportedConfiguration from_plain() {
  Meaning meaning(Runtime::ddp);
  for (const char* flag : {"--tp", "--pp", "--vpp", "--cp", "--ep", "--etp"}) {
    meaning.say(flag, "1");
  }
  meaning.say("--zero", "0");
  meaning.say("--schedule", "1f1b");
  meaning.say("--sequence-parallel", "off");
  meaning.say("--offload", "none");
  return meaning.finish(ConfigurationFormat::trainer, Entries({}));
}

}  // namespace

std::vector<Entry> to_trainer(const Problem& p) {
  std::vector<Entry> out{{"per_device_train_batch_size", p.layout.micro_batch},
                         {"gradient_accumulation_steps", micro_batches(p)},
                         {"bf16", p.training.precision == Precision::bf16},
                         {"fp16", p.training.precision == Precision::fp16},
                         {"gradient_checkpointing", p.layout.recompute == Recompute::full}};
  for (const OptimizerName& name : optimizers) {
    if (name.ours == p.training.optimizer) out.push_back({"optim", name.theirs});
  }
  if (p.runtime.kind != Runtime::deepspeed) return out;
  for (Entry& entry : to_deepspeed(p)) {
    if (!is_said_by_trainer(entry)) {
      out.push_back({std::string(nested) + entry.key, std::move(entry.value)});
    }
  }
  return out;
}

ImportedConfiguration from_trainer(Entries entries) {
  std::vector<Entry> deepspeed;
  const std::vector<Entry> all = entries.list();
  for (const Entry& entry : all) {
    if (!entry.key.starts_with(nested)) continue;
    Entry own{entry.key.substr(nested.size()), entry.value};
    if (own.value != "auto" || !is_filled_in(own.key)) deepspeed.push_back(std::move(own));
    entries.take_flag(entry.key);
  }
  ImportedConfiguration imported =
      deepspeed.empty() ? from_plain() : from_deepspeed(Entries(deepspeed));
  imported.format = name_of(ConfigurationFormat::trainer);
  const auto yes = [&](std::string_view key) {
    return entries.take_if(key, {"true", "false"}) == "true";
  };
  if (const auto micro = entries.take("per_device_train_batch_size")) {
    say(imported, "--micro-batch", *micro);
  }
  if (!deepspeed.empty()) entries.take("gradient_accumulation_steps");  // said there too
  const bool bf16 = yes("bf16");
  const bool fp16 = yes("fp16");
  say(imported, "--precision", bf16 ? "bf16" : fp16 ? "fp16" : "fp32");
  say(imported, "--recompute", yes("gradient_checkpointing") ? "full" : "none");
  const auto optimizer =
      entries.take_if("optim", {"adamw_torch", "adamw_torch_fused", "sgd", "adamw_bnb_8bit"});
  say(imported, "--optimizer",
      optimizer == "sgd"              ? "sgd"
      : optimizer == "adamw_bnb_8bit" ? "adam8bit"
                                      : "adam");
  for (std::string& text : entries.left_over()) imported.not_understood.push_back(std::move(text));
  return imported;
}

}  // namespace zeroplan
