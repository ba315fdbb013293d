// How does nanotron's YAML say a layout? Front doors: to_nanotron, from_nanotron.
#include <fmt/format.h>

#include "presets/configuration/mapping.hpp"

namespace zeroplan {
namespace {

std::string_view type_name(Precision precision) {
  return precision == Precision::fp32   ? "float32"
         : precision == Precision::fp16 ? "float16"
                                        : "bfloat16";
}

const std::string model_section = "model.model_config.";

bool is_of(const Entries& entries, std::string_view config) {
  return entries.text(model_section + std::string(config)) == "true";
}

// What config/models_config.py LlamaConfig and Qwen2Config share with Hugging Face's. The second
// is Qwen2's layer with its bias, and Llama's without.
std::string read_model(const Entries& entries) {
  const bool qwen = is_of(entries, "is_qwen2_config");
  if (!qwen && !is_of(entries, "is_llama_config")) return "";
  if (!entries.has(model_section + "hidden_size")) return "";  // the layout alone was exported
  const bool biased = qwen && is_of(entries, "attention_bias");
  nlohmann::ordered_json config{{"model_type", biased ? "qwen2" : "llama"}};
  for (const Entry& entry : entries.list()) {
    if (!entry.key.starts_with(model_section)) continue;
    const std::string name = entry.key.substr(model_section.size());
    const bool plain = entry.value.is_boolean() || entry.value.is_number_integer();
    if (plain && !name.starts_with("is_")) config[name] = entry.value;
  }
  return config.dump(2);
}

// Fields of the model that say how it runs, and the version that has its class.
void read_code(Meaning& meaning, Entries& entries) {
  if (is_of(entries, "is_qwen2_config")) {
    meaning.set("version", name_of(NanotronVersion::of_2025_06));
    const auto logs = entries.take_if(model_section + "log_attn_probs", {"true", "false"});
    meaning.set("log_attn_probs", logs.value_or("true"));
  }
  meaning.set_if("z_loss_enabled",
                 entries.take_if(model_section + "z_loss_enabled", {"true", "false"}));
  meaning.set_if("tp_recompute_allgather",
                 entries.take_if("parallelism.tp_recompute_allgather", {"true", "false"}));
}

}  // namespace

std::vector<Entry> to_nanotron(const Problem& p) {
  const Layout& l = p.layout;
  std::vector<Entry> out{
      {"model.dtype", type_name(p.training.precision)},
      {"optimizer.accumulate_grad_in_fp32", true},
      {"optimizer.zero_stage", static_cast<int>(l.zero)},
  };
  const OptimizerKind optimizer = p.training.optimizer;
  if (optimizer == OptimizerKind::adam) {
    out.push_back({"optimizer.optimizer_factory.name", "adamW"});
  }
  if (optimizer == OptimizerKind::sgd) out.push_back({"optimizer.optimizer_factory.name", "sgd"});
  const NanotronSettings& set = p.runtime.nanotron;
  if (set.version == NanotronVersion::of_2025_06) {
    out.push_back({model_section + "is_qwen2_config", true});
    out.push_back({model_section + "log_attn_probs", set.log_attn_probs});
    out.push_back({model_section + "z_loss_enabled", set.z_loss});
  }
  out.insert(out.end(),
             {{"parallelism.dp", l.dp},
              {"parallelism.pp", l.pp},
              {"parallelism.pp_engine", l.schedule == Schedule::gpipe ? "afab" : "1f1b"},
              {"parallelism.recompute_layer", l.recompute == Recompute::full},
              {"parallelism.tp", l.tp},
              {"parallelism.tp_recompute_allgather", set.tp_recompute_allgather},
              {"parallelism.tp_mode", l.sequence_parallel ? "REDUCE_SCATTER" : "ALL_REDUCE"},
              {"tokens.batch_accumulation_per_replica", micro_batches(p)},
              {"tokens.micro_batch_size", l.micro_batch},
              {"tokens.sequence_length", p.training.sequence_length}});
  return out;
}

ImportedConfiguration from_nanotron(Entries entries) {
  Meaning meaning(Runtime::nanotron);
  const auto dp = entries.take_count("parallelism.dp");
  const auto micro = entries.take_count("tokens.micro_batch_size");
  const auto steps = entries.take_count("tokens.batch_accumulation_per_replica");
  meaning.say_if("--micro-batch", micro);
  if (dp && steps && micro) {
    meaning.say("--global-batch", *dp * *steps * *micro);
  } else {
    meaning.say_if("--gradient-accumulation", steps);
  }
  meaning.say_if("--seq", entries.take_count("tokens.sequence_length"));
  const std::int64_t tp = entries.take_count("parallelism.tp").value_or(1);
  meaning.say("--tp", tp);
  const auto mode = entries.take_if("parallelism.tp_mode", {"REDUCE_SCATTER", "ALL_REDUCE"});
  meaning.say("--sequence-parallel", mode == "REDUCE_SCATTER" && tp > 1 ? "on" : "off");
  meaning.say("--pp", entries.take_count("parallelism.pp").value_or(1));
  const auto engine = entries.take_if("parallelism.pp_engine", {"afab", "1f1b"});
  meaning.say("--schedule", engine == "afab" ? "gpipe" : "1f1b");
  const auto again = entries.take_if("parallelism.recompute_layer", {"true", "false"});
  meaning.say("--recompute", again == "true" ? "full" : "none");
  for (const char* key :
       {"parallelism.expert_parallel_size", "parallelism.context_parallel_size"}) {
    if (const std::int64_t size = entries.take_count(key).value_or(1); size > 1) {
      entries.fail(fmt::format("{} {}: not modelled for nanotron", key, size));
    }
  }
  for (const char* flag : {"--vpp", "--cp", "--ep", "--etp"}) meaning.say(flag, "1");
  const auto stage = entries.take_if("optimizer.zero_stage", {"0", "1"});
  meaning.say("--zero", stage.value_or("0"));
  entries.take_if("optimizer.accumulate_grad_in_fp32", {"true"});
  const auto optimizer = entries.take_if("optimizer.optimizer_factory.name", {"adamW", "sgd"});
  meaning.say("--optimizer", optimizer == "sgd" ? "sgd" : "adam");
  const auto type = entries.take_if("model.dtype", {"float32", "float16", "bfloat16"});
  meaning.say("--precision", type == "float32" ? "fp32" : type == "float16" ? "fp16" : "bf16");
  meaning.say("--offload", "none");
  meaning.say("--attention", "flash");
  std::string model = read_model(entries);
  read_code(meaning, entries);
  std::vector<std::string> about_model;
  for (const Entry& entry : entries.list()) {
    if (entry.key.starts_with(model_section)) about_model.push_back(entry.key);
  }
  for (const std::string& key : about_model) entries.take(key);
  meaning.about_model(std::move(about_model));
  ImportedConfiguration result = meaning.finish(ConfigurationFormat::nanotron, entries);
  result.model_config = std::move(model);
  return result;
}

}  // namespace zeroplan
