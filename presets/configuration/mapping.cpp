// What do all formats need to say what they mean? Front door: Meaning.
#include "presets/configuration/mapping.hpp"

#include <charconv>

#include "presets/input_error.hpp"

namespace zeroplan {

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

void Meaning::not_understood(std::string what) {
  result_.not_understood.push_back(std::move(what));
}

ImportedConfiguration Meaning::finish(ConfigurationFormat format, const Entries& entries) {
  result_.format = name_of(format);
  for (const auto& [key, value] : changed_settings(load_runtime(runtime_, settings_))) {
    say("--set", key + "=" + value);
  }
  for (std::string& text : entries.left_over()) result_.not_understood.push_back(std::move(text));
  return std::move(result_);
}

std::optional<std::int64_t> whole(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc{} || end != text->data() + text->size()) return std::nullopt;
  return value;
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
