// What does a configuration file mean, and which file says a problem? Front doors:
// import_configuration, export_configuration.
#include "presets/configuration.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "presets/configuration/accelerate.hpp"
#include "presets/configuration/bridge_fields.hpp"
#include "presets/configuration/bridge_recipe.hpp"
#include "presets/configuration/fine_tuning.hpp"
#include "presets/configuration/mapping.hpp"
#include "presets/configuration/model_differences.hpp"
#include "presets/configuration/nemo.hpp"
#include "presets/configuration/shell_script.hpp"
#include "presets/configuration/torchtitan_python.hpp"
#include "presets/configuration/trainer_entries.hpp"
#include "presets/hf_config.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"
#include "presets/strict_json.hpp"
#include "presets/text_file.hpp"

namespace zeroplan {
namespace {

using enum ConfigurationFormat;

std::vector<Entry> read_as(ConfigurationFormat format,
                           std::string_view text,
                           std::string_view where) {
  switch (format) {
    case megatron:
      return read_arguments(text, where);
    case megatron_bridge:
      return read_python(text, where).entries;
    case torchtitan:
      return looks_like_python(text) ? read_torchtitan_python(read_python(text, where), where)
                                     : read_toml(text, where);
    case deepspeed:
    case trainer:
      return read_json(text, where);
    case accelerate:
    case nanotron:
      break;
  }
  return read_yaml(text, where);
}

ImportedConfiguration meaning_of(ConfigurationFormat format, Entries entries) {
  switch (format) {
    case megatron:
      return from_megatron(std::move(entries));
    case megatron_bridge:
      return from_nemo(std::move(entries), common_recipe);
    case torchtitan:
      return from_torchtitan(std::move(entries));
    case deepspeed:
      return from_deepspeed(std::move(entries));
    case trainer:
      return from_trainer(std::move(entries));
    case accelerate:
      return from_accelerate(std::move(entries), {});
    case nanotron:
      break;
  }
  return from_nanotron(std::move(entries));
}

std::string text_of(const Problem& problem, ConfigurationFormat format) {
  switch (format) {
    case megatron:
      return write_arguments(to_megatron(problem));
    case megatron_bridge:
      return write_bridge_recipe(problem);
    case torchtitan:
      if (reads_python(problem)) return write_torchtitan_python(problem, to_torchtitan(problem));
      return "# torchtitan until 2026-02-23, when its configurations became Python; [model] is "
             "yours to add\n" +
             write_toml(to_torchtitan(problem));
    case deepspeed:
      return write_json(to_deepspeed(problem));
    case trainer:
      return write_json(to_trainer(problem));
    case accelerate:
      return write_yaml(to_accelerate(problem));
    case nanotron:
      break;
  }
  return write_yaml(to_nanotron(problem));
}

// Some formats say a sharding group by the copies of it in dp, and a batch by the micro-batches of
// a replica.
bool means(const TypedOption& said, const TypedOption& option, const Problem& p) {
  if (said.flag == "--hsdp" && option.flag == "--hsdp" && said.value.starts_with("dp/")) {
    return said.value == fmt::format("dp/{}", p.layout.dp / p.layout.hsdp);
  }
  if (said.flag == "--gradient-accumulation" && option.flag == "--global-batch") {
    return said.value == std::to_string(micro_batches(p));
  }
  return said == option;
}

// Whether the file says of buckets the size that their default has among the plan's ranks.
bool is_default_bucket(const TypedOption& meant, const Problem& p) {
  const MegatronSettings& set = p.runtime.megatron;
  const std::int64_t elements = set.bucket_elements(p.layout);
  return set.ddp_bucket_size == 0 && meant.value == fmt::format("ddp_bucket_size={}", elements);
}

// A setting that is at its default in the plan, where the file means another value.
std::optional<TypedOption> other_setting(const TypedOption& meant,
                                         const std::vector<TypedOption>& wanted,
                                         const Problem& p) {
  if (meant.flag != "--set") return std::nullopt;
  const std::string key = meant.value.substr(0, meant.value.find('='));
  const bool known = std::any_of(wanted.begin(), wanted.end(), [&](const TypedOption& option) {
    return option.flag == "--set" && option.value.starts_with(key + "=");
  });
  TypedOption own{"--set", key + "=" + setting_text(p.runtime, key)};
  if (known || own == meant || is_default_bucket(meant, p)) return std::nullopt;
  return own;
}

// The first line that is neither empty nor a comment.
std::string_view first_line(std::string_view text) {
  while (!text.empty()) {
    const std::size_t start = text.find_first_not_of(" \t\r\n");
    if (start == text.npos) return {};
    text = text.substr(start);
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.front() != '#' && !line.starts_with("//")) return line;
    text = text.substr(line.size());
  }
  return {};
}

// JSON read as a plan, or as the format that its keys are of.
ImportedConfiguration import_json(std::string_view text, std::string_view where) {
  const std::string plain = without_comments(text);
  const nlohmann::json document = parse_json(plain, where);
  const JsonObject object(document, std::string(where));
  if (object.has("schema")) return import_plan(text, where);
  std::vector<Entry> entries = read_json(plain, where);
  // Plain values of the Trainer, whose keys are objects in DeepSpeed's own file.
  const bool scalar = std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.key == "bf16" || entry.key == "fp16" || entry.key == "output_dir";
  });
  const ConfigurationFormat format = scalar || is_of_trainer(entries) ? trainer : deepspeed;
  return meaning_of(format, Entries(std::move(entries), where));
}

ImportedConfiguration import_arguments(std::string_view text, std::string_view where) {
  std::vector<Entry> entries = read_arguments(text, where);
  std::vector<Entry> of_trainer = trainer_arguments(entries);
  if (is_of_trainer(of_trainer)) return from_trainer(Entries(std::move(of_trainer), where));
  return from_megatron(Entries(std::move(entries), where));
}

ImportedConfiguration import_yaml(std::string_view text, std::string_view where) {
  std::vector<Entry> entries = read_yaml(text, where);
  if (is_of_accelerate(entries)) return from_accelerate(Entries(std::move(entries), where), {});
  if (is_of_nemo(entries)) return from_nemo(Entries(std::move(entries), where), "");
  if (is_of_fine_tuner(entries) || is_of_trainer(entries)) {
    return from_trainer(Entries(as_trainer_arguments(std::move(entries), where), where));
  }
  return from_nanotron(Entries(std::move(entries), where));
}

bool begins_with(const std::vector<Entry>& entries, std::string_view section) {
  return std::any_of(entries.begin(), entries.end(),
                     [&](const Entry& entry) { return entry.key.starts_with(section); });
}

ImportedConfiguration import_python(std::string_view text, std::string_view where) {
  PythonConfiguration file = read_python(text, where);
  std::vector<Entry>& entries = file.entries;
  if (is_of_nemo(entries) || begins_with(entries, "ddp.") || begins_with(entries, "train.") ||
      begins_with(entries, "mixed_precision")) {
    return from_nemo(Entries(std::move(entries), where), file.base);
  }
  if (begins_with(entries, "training.") || begins_with(entries, "parallelism.")) {
    return from_torchtitan(Entries(read_torchtitan_python(std::move(file), where), where));
  }
  if (is_of_trainer(entries)) return from_trainer(Entries(std::move(entries), where));
  throw InputError(
      fmt::format("{}: Python that configures nothing known: must be {}", where, readable_formats));
}

// What a script starts, and on how many GPUs. Where Accelerate starts it, its file says the rest.
ImportedConfiguration import_command(const LaunchCommand& command, std::string_view where) {
  if (!command.refused.empty()) throw InputError(fmt::format("{}: {}", where, command.refused));
  ImportedConfiguration result;
  if (command.accelerate_file.empty()) {
    result = import_arguments(command.arguments, where);
  } else {
    const std::vector<Entry> arguments = read_arguments(command.arguments, where);
    result = from_accelerate(
        Entries(read_yaml(read_text_file(command.accelerate_file), command.accelerate_file), where),
        trainer_arguments(arguments));
  }
  result.notes.push_back(fmt::format("read from the command of {}", in_quotes(command.script)));
  if (command.ranks && result.ranks != command.ranks) {
    result.ranks = command.ranks;
    result.notes.push_back(fmt::format("it starts {} ranks: as many in --gpus", *command.ranks));
  }
  return result;
}

bool is_shell(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  return line.starts_with("#!") && line.ends_with("sh");
}

ImportedConfiguration import_text(std::string_view text, std::string_view where) {
  const std::string_view first = first_line(text);
  if (first.starts_with('{')) return import_json(text, where);
  const std::string letters = as_utf8(text);  // what is read may become part of a document
  text = letters;
  if (first.starts_with("--")) return import_arguments(text, where);
  if (first.starts_with('[')) return from_torchtitan(Entries(read_toml(text, where), where));
  if (!is_shell(text) && looks_like_python(text)) return import_python(text, where);
  if (auto command = launch_command(text)) return import_command(*command, where);
  if (first.find(':') != first.npos) return import_yaml(text, where);
  throw InputError(fmt::format("{}: must be {}", where, readable_formats));
}

bool says_batch(const TypedOption& option) {
  return option.flag == "--global-batch" || option.flag == "--gradient-accumulation";
}

}  // namespace

std::vector<ConfigurationFormat> formats_of(const RuntimeSpec& runtime) {
  switch (runtime.kind) {
    case Runtime::megatron:
      return {megatron, megatron_bridge};
    case Runtime::fsdp2:
      if (runtime.fsdp2.layers == LayerCode::huggingface) return {trainer, accelerate};
      return {torchtitan};
    case Runtime::deepspeed:
      return {deepspeed, trainer, accelerate};
    case Runtime::ddp:
      return {trainer, accelerate};
    case Runtime::nanotron:
      return {nanotron};
    case Runtime::zero_paper:
    case Runtime::zeroplan:
      break;
  }
  return {};
}

ExportedConfiguration export_configuration(const Problem& problem, ConfigurationFormat format) {
  ExportedConfiguration result{.text = text_of(problem, format)};
  const std::string_view where = name_of(format);
  const ImportedConfiguration back =
      meaning_of(format, Entries(read_as(format, result.text, where), where));
  std::vector<TypedOption> known = back.options;
  known.insert(known.end(), back.left_open.begin(), back.left_open.end());
  const std::vector<TypedOption> wanted = options_of(problem);
  for (const TypedOption& option : known) {
    if (std::optional<TypedOption> other = other_setting(option, wanted, problem)) {
      result.unsaid.push_back(std::move(*other));
    }
  }
  for (const TypedOption& option : wanted) {
    const bool said = std::any_of(known.begin(), known.end(), [&](const TypedOption& read) {
      return means(read, option, problem);
    });
    if (!said) result.unsaid.push_back(option);
  }
  if (!back.model_config.empty()) {
    const ModelSpec built = read_hf_config(back.model_config, where, nullptr);
    result.other_model = model_differences(problem.model, built);
  }
  return result;
}

ImportedConfiguration import_configuration(std::string_view text, std::string_view where) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  ImportedConfiguration imported = import_text(text, where);
  if (std::none_of(imported.options.begin(), imported.options.end(), says_batch)) {
    imported.notes.emplace_back(
        "the file says no batch of a step: without --global-batch four million tokens are assumed");
  }
  // Whatever the format, what is said of its keys goes to a terminal.
  for (auto* list : {&imported.notes, &imported.not_understood, &imported.about_model}) {
    for (std::string& text_of : *list) text_of = printable(text_of);
  }
  return imported;
}

}  // namespace zeroplan
