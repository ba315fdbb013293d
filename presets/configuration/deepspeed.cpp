// How does DeepSpeed's JSON say a layout? Front doors: to_deepspeed, from_deepspeed.
#include <fmt/format.h>

#include "presets/configuration/mapping.hpp"

namespace zeroplan {
namespace {

// Settings and where they stand in the file.
struct Place {
  std::string_view setting;
  std::string_view key;
};
constexpr Place zero_places[] = {
    {"reduce_bucket_size", "zero_optimization.reduce_bucket_size"},
    {"overlap_comm", "zero_optimization.overlap_comm"},
    {"stage3_prefetch_bucket_size", "zero_optimization.stage3_prefetch_bucket_size"},
    {"stage3_max_live_parameters", "zero_optimization.stage3_max_live_parameters"},
    {"stage3_max_reuse_distance", "zero_optimization.stage3_max_reuse_distance"},
    {"sub_group_size", "zero_optimization.sub_group_size"},
    {"zero_hpz_partition_size", "zero_optimization.zero_hpz_partition_size"},
    {"zero_quantized_weights", "zero_optimization.zero_quantized_weights"},
    {"zero_quantized_gradients", "zero_optimization.zero_quantized_gradients"}};
// Settings that are written where they are not at their defaults.
constexpr Place other_places[] = {
    {"data_types.grad_accum_dtype", "data_types.grad_accum_dtype"},
    {"activation_checkpointing.partition_activations",
     "activation_checkpointing.partition_activations"},
    {"activation_checkpointing.cpu_checkpointing", "activation_checkpointing.cpu_checkpointing"},
    {"activation_checkpointing.contiguous_memory_optimization",
     "activation_checkpointing.contiguous_memory_optimization"},
    {"activation_checkpointing.number_checkpoints", "activation_checkpointing.number_checkpoints"},
    {"stage3_gather_16bit_weights_on_model_save",
     "zero_optimization.stage3_gather_16bit_weights_on_model_save"}};

struct OptimizerName {
  OptimizerKind ours;
  std::string_view theirs;
};
constexpr OptimizerName optimizers[] = {
    {OptimizerKind::adam, "AdamW"}, {OptimizerKind::sgd, "SGD"}, {OptimizerKind::muon, "Muon"}};

ConfigValue typed(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  if (const auto number = whole(text)) return *number;
  return text;
}

void add_offload(std::vector<Entry>& out, Offload offload) {
  if (offload == Offload::optimizer || offload == Offload::parameters) {
    out.push_back({"zero_optimization.offload_optimizer.device", "cpu"});
  }
  if (offload == Offload::parameters) {
    out.push_back({"zero_optimization.offload_param.device", "cpu"});
  }
}

// Whether what `part` names leaves the device; empty where the file leaves it open.
std::optional<bool> leaves_device(Entries& entries, Meaning& meaning, std::string_view part) {
  const std::string key = "zero_optimization." + std::string(part);
  const auto to = entries.take_if(key + ".device", {"cpu", "nvme", "none"});
  // The device holds as little; the time of the disk is not known.
  if (to == "nvme") meaning.not_understood(key + ".device 'nvme': taken for host memory");
  entries.take_if(key + ".ratio", {"1", "1.0"});  // less: the rest of the states stays
  if (entries.has(key + ".device")) return std::nullopt;
  return to.value_or("none") != "none";
}

void read_offload(Entries& entries, Meaning& meaning) {
  const auto optimizer = leaves_device(entries, meaning, "offload_optimizer");
  const auto parameters = leaves_device(entries, meaning, "offload_param");
  if (!optimizer || !parameters) return;
  meaning.say("--offload", *parameters ? "parameters" : *optimizer ? "optimizer" : "none");
}

// "auto" says nothing: the Trainer puts its own argument there, else DeepSpeed drops the key
// (runtime/config_utils.py DeepSpeedConfigModel). Left in the file, it is listed.
std::optional<std::string> said(Entries& entries, std::string_view key) {
  return entries.text(key) == "auto" ? std::nullopt : entries.take(key);
}

std::optional<std::int64_t> number(Entries& entries, std::string_view key) {
  return entries.text(key) == "auto" ? std::nullopt : entries.take_count(key);
}

// The number that a key says; empty also where it says one of `off`, which stand for none.
std::optional<std::int64_t> number_but(Entries& entries,
                                       std::string_view key,
                                       std::initializer_list<std::string_view> off) {
  return entries.take_if(key, off) ? std::nullopt : number(entries, key);
}

void read_precision(Entries& entries, Meaning& meaning) {
  const bool bf16 = entries.take_if("bf16.enabled", {"true", "false"}) == "true";
  const bool fp16 = entries.take_if("fp16.enabled", {"true", "false"}) == "true";
  const bool open = entries.has("bf16.enabled") || entries.has("fp16.enabled");
  if (open && !bf16 && !fp16) return;
  meaning.say("--precision", bf16 ? "bf16" : fp16 ? "fp16" : "fp32");
}

// Batches: two of three say the third, which needs the number of replicas, and the steps are 1
// where one is given alone (runtime/config.py _set_batch_related_parameters).
void read_batch(Entries& entries, Meaning& meaning) {
  const char* micro_key = "train_micro_batch_size_per_gpu";
  const char* global_key = "train_batch_size";
  const char* steps_key = "gradient_accumulation_steps";
  const bool alone = !entries.has(steps_key) && entries.has(micro_key) != entries.has(global_key);
  const auto micro = number(entries, micro_key);
  const auto global = number(entries, global_key);
  const auto steps = number(entries, steps_key);
  meaning.say_if("--micro-batch", micro);
  if (!global) {
    if (steps || (alone && micro)) meaning.say("--gradient-accumulation", steps.value_or(1));
    return;
  }
  meaning.say("--global-batch", *global);
  if (micro && steps && *global % (*micro * *steps) != 0) {
    entries.fail(fmt::format("{} {} is no multiple of {} {} x {} {}", global_key, *global,
                             micro_key, *micro, steps_key, *steps));
  }
  if (micro || (!steps && !alone)) return;
  meaning.note(
      fmt::format("the micro-batch is {} / {} / dp, and dp is not in the file: give "
                  "--micro-batch",
                  *global, steps.value_or(1)));
}

void read_zero(Entries& entries, Meaning& meaning, std::int64_t cp) {
  const auto stage = entries.take_if("zero_optimization.stage", {"0", "1", "2", "3"});
  if (!entries.has("zero_optimization.stage")) meaning.say("--zero", stage.value_or("0"));
  // Overlap is the default of stage 3 alone.
  if (entries.text("zero_optimization.overlap_comm").value_or("auto") == "auto" && stage == "3") {
    meaning.set("overlap_comm", "true");
  }
  for (const Place& place : zero_places) {
    const std::string key(place.key);
    meaning.set_if(place.setting, said(entries, key));
    // The short name of a stage-3 key loads too.
    const std::size_t prefix = key.find("stage3_");
    if (prefix == key.npos) continue;
    meaning.set_if(place.setting, said(entries, key.substr(0, prefix) + key.substr(prefix + 7)));
  }
  const auto group = number_but(entries, "zero_optimization.mics_shard_size", {"-1", "0"});
  if (!group) return;
  if (*group % cp != 0) {
    entries.fail(fmt::format("mics_shard_size {}: sequence_parallel_size {} does not divide it",
                             *group, cp));
  }
  meaning.say("--hsdp", *group / cp);
}

}  // namespace

std::vector<Entry> to_deepspeed(const Problem& p) {
  const Layout& l = p.layout;
  std::vector<Entry> out{{"train_batch_size", p.training.global_batch},
                         {"train_micro_batch_size_per_gpu", l.micro_batch},
                         {"gradient_accumulation_steps", micro_batches(p)}};
  if (p.training.precision == Precision::bf16) out.push_back({"bf16.enabled", true});
  if (p.training.precision == Precision::fp16) out.push_back({"fp16.enabled", true});
  out.push_back({"zero_optimization.stage", static_cast<int>(l.zero)});
  for (const Place& place : zero_places) {
    out.push_back({std::string(place.key), typed(setting_text(p.runtime, place.setting))});
  }
  if (l.hsdp > 0) out.push_back({"zero_optimization.mics_shard_size", l.hsdp * l.cp});
  add_offload(out, l.offload);
  for (const auto& [key, value] : changed_settings(p.runtime)) {
    for (const Place& place : other_places) {
      if (place.setting == key) out.push_back({std::string(place.key), typed(value)});
    }
  }
  if (l.tp > 1) out.push_back({"tensor_parallel.autotp_size", l.tp});
  if (l.cp > 1) out.push_back({"sequence_parallel_size", l.cp});
  for (const OptimizerName& name : optimizers) {
    if (name.ours == p.training.optimizer) out.push_back({"optimizer.type", name.theirs});
  }
  return out;
}

ImportedConfiguration from_deepspeed(Entries entries) {
  Meaning meaning(Runtime::deepspeed);
  meaning.say("--tp", number_but(entries, "tensor_parallel.autotp_size", {"0"}).value_or(1));
  const std::int64_t cp = number(entries, "sequence_parallel_size").value_or(1);
  meaning.say("--cp", cp);
  // What has no key is said by code; without it there is one of each.
  for (const char* flag : {"--pp", "--vpp", "--ep", "--etp"}) meaning.leave_open(flag, "1");
  meaning.leave_open("--schedule", "1f1b");
  meaning.leave_open("--sequence-parallel", "off");
  read_batch(entries, meaning);
  read_precision(entries, meaning);
  read_zero(entries, meaning, cp);
  read_offload(entries, meaning);
  for (const Place& place : other_places) meaning.set_if(place.setting, said(entries, place.key));
  // Without an optimizer in the file the code brings its own.
  if (!entries.has("optimizer.type")) meaning.leave_open("--optimizer", "adam");
  const auto optimizer = entries.take_if("optimizer.type", {"Adam", "AdamW", "SGD", "Muon"});
  if (optimizer) {
    meaning.say("--optimizer", optimizer == "SGD" ? "sgd" : optimizer == "Muon" ? "muon" : "adam");
  }
  return meaning.finish(ConfigurationFormat::deepspeed, entries);
}

}  // namespace zeroplan
