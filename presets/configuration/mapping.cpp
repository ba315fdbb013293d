// What do all formats need to say what they mean? Front door: Meaning.
#include "presets/configuration/mapping.hpp"

#include <fmt/format.h>

#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

// Whose keys, and one that most files have. The Trainer's are told by their names.
std::string_view usual_key(ConfigurationFormat format) {
  switch (format) {
    case ConfigurationFormat::megatron:
    case ConfigurationFormat::megatron_bridge:
      return "Megatron-LM's, such as tensor-model-parallel-size";
    case ConfigurationFormat::torchtitan:
      return "torchtitan's, such as training.seq_len";
    case ConfigurationFormat::nanotron:
      return "nanotron's, such as parallelism.tp";
    case ConfigurationFormat::accelerate:
      return "Accelerate's, such as distributed_type";
    case ConfigurationFormat::deepspeed:
    case ConfigurationFormat::trainer:
      break;
  }
  return "DeepSpeed's, such as zero_optimization.stage, or the Trainer's, such as output_dir";
}

}  // namespace

void add_left_over(ImportedConfiguration& imported, const Entries& entries) {
  for (std::string& text : entries.left_over()) {
    imported.not_understood.push_back(std::move(text));
  }
  for (std::string& key : entries.immaterial()) imported.immaterial.push_back(std::move(key));
}

Meaning::Meaning(Runtime runtime) : runtime_(runtime) {
  say("--runtime", name_of(runtime));
}

void Meaning::say(std::string_view flag, std::string_view value) {
  result_.options.push_back({std::string(flag), std::string(value)});
}

void Meaning::say(std::string_view flag, std::int64_t value) {
  say(flag, std::to_string(value));
}

void Meaning::say_if(std::string_view flag, const std::optional<std::string>& value) {
  if (value) say(flag, *value);
}

void Meaning::say_if(std::string_view flag, std::optional<std::int64_t> value) {
  if (value) say(flag, *value);
}

void Meaning::leave_open(std::string_view flag, std::string_view value) {
  result_.left_open.push_back({std::string(flag), std::string(value)});
}

void Meaning::set(std::string_view key, std::string_view value) {
  Override setting{key, value};
  try {
    load_runtime(runtime_, {setting});
    settings_.push_back(std::move(setting));
  } catch (const InputError& error) {
    not_understood(error.what());
  }
}

void Meaning::set_if(std::string_view key, const std::optional<std::string>& value) {
  if (value) set(key, *value);
}

void Meaning::about_model(std::vector<std::string> keys) {
  result_.about_model = std::move(keys);
}

void Meaning::note(std::string what) {
  result_.notes.push_back(std::move(what));
}

void Meaning::not_understood(std::string what) {
  result_.not_understood.push_back(std::move(what));
}

ImportedConfiguration Meaning::finish(ConfigurationFormat format, const Entries& entries) {
  if (format != ConfigurationFormat::trainer && !entries.any_known()) {
    entries.fail(
        fmt::format("no key of it is one of {}: must be {}", usual_key(format), readable_formats));
  }
  result_.format = name_of(format);
  for (const auto& [key, value] : changed_settings(load_runtime(runtime_, settings_))) {
    say("--set", key + "=" + value);
  }
  add_left_over(result_, entries);
  return std::move(result_);
}

std::vector<TypedOption> options_of(const Problem& problem) {
  const Layout& l = problem.layout;
  const TrainingSpec& t = problem.training;
  std::vector<TypedOption> options;
  const auto say = [&](std::string_view flag, std::string_view value) {
    options.push_back({std::string(flag), std::string(value)});
  };
  const auto count = [&](std::string_view flag, std::int64_t value) {
    say(flag, std::to_string(value));
  };
  say("--runtime", name_of(problem.runtime.kind));
  count("--tp", l.tp);
  count("--pp", l.pp);
  count("--vpp", l.vpp);
  count("--cp", l.cp);
  count("--ep", l.ep);
  count("--etp", l.etp);
  say("--zero", name_of(l.zero));
  if (l.hsdp > 0) count("--hsdp", l.hsdp);
  say("--sequence-parallel", l.sequence_parallel ? "on" : "off");
  count("--micro-batch", l.micro_batch);
  count("--global-batch", t.global_batch);
  count("--seq", t.sequence_length);
  say("--schedule", name_of(l.schedule));
  say("--recompute", name_of(l.recompute));
  say("--precision", name_of(t.precision));
  say("--optimizer", name_of(t.optimizer));
  say("--attention", name_of(t.attention));
  say("--offload", name_of(l.offload));
  for (const auto& [key, value] : changed_settings(problem.runtime)) {
    say("--set", key + "=" + value);
  }
  return options;
}

}  // namespace zeroplan
