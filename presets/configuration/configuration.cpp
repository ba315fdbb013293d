// What does a configuration file mean, and which file says a problem? Front doors:
// import_configuration, export_configuration.
#include "presets/configuration.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "presets/configuration/mapping.hpp"
#include "presets/input_error.hpp"
#include "presets/strict_json.hpp"

namespace zeroplan {
namespace {

using enum ConfigurationFormat;

ImportedConfiguration import_as(ConfigurationFormat format,
                                std::string_view text,
                                std::string_view where) {
  switch (format) {
    case megatron:
      return from_megatron(Entries(read_arguments(text, where)));
    case torchtitan:
      return from_torchtitan(Entries(read_toml(text, where)));
    case deepspeed:
      return from_deepspeed(Entries(read_json(text, where)));
    case trainer:
      return from_trainer(Entries(read_json(text, where)));
    case nanotron:
      break;
  }
  return from_nanotron(Entries(read_yaml(text, where)));
}

std::string text_of(const Problem& problem, ConfigurationFormat format) {
  switch (format) {
    case megatron:
      return write_arguments(to_megatron(problem));
    case torchtitan:
      return "# torchtitan while its configurations were TOML; [model] is yours to add\n" +
             write_toml(to_torchtitan(problem));
    case deepspeed:
      return write_json(to_deepspeed(problem));
    case trainer:
      return write_json(to_trainer(problem));
    case nanotron:
      break;
  }
  return write_yaml(to_nanotron(problem));
}

// Megatron-LM says a sharding group by the copies of it in dp.
bool means(const TypedOption& said, const TypedOption& option, const Layout& l) {
  if (said.flag == "--hsdp" && option.flag == "--hsdp" && said.value.starts_with("dp/")) {
    return said.value == fmt::format("dp/{}", l.dp / l.hsdp);
  }
  return said == option;
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

constexpr std::string_view readable =
    "a plan or DeepSpeed's or the Trainer's JSON, Megatron-LM's arguments, torchtitan's TOML or "
    "nanotron's YAML";

// Other programs configure in YAML too, which nothing tells from nanotron's but its keys.
ImportedConfiguration import_yaml(std::string_view text, std::string_view where) {
  const std::vector<Entry> entries = read_yaml(text, where);
  ImportedConfiguration imported = from_nanotron(Entries(entries));
  if (imported.not_understood.size() < entries.size()) return imported;
  throw InputError(
      fmt::format("{}: no key of it is one of nanotron's, such as parallelism.tp: must be {}",
                  where, readable));
}

// Keys that TrainingArguments has and DeepSpeed's own file has not.
bool is_of_trainer(const JsonObject& object) {
  constexpr std::string_view keys[] = {"deepspeed", "per_device_train_batch_size",
                                       "gradient_checkpointing", "output_dir"};
  return object.first_of(keys).has_value();
}

}  // namespace

std::vector<ConfigurationFormat> formats_of(Runtime runtime) {
  switch (runtime) {
    case Runtime::megatron:
      return {megatron};
    case Runtime::fsdp2:
      return {torchtitan};
    case Runtime::deepspeed:
      return {deepspeed, trainer};
    case Runtime::ddp:
      return {trainer};
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
  const ImportedConfiguration back = import_as(format, result.text, name_of(format));
  for (TypedOption& option : options_of(problem)) {
    const bool said =
        std::any_of(back.options.begin(), back.options.end(),
                    [&](const TypedOption& read) { return means(read, option, problem.layout); });
    if (!said) result.unsaid.push_back(std::move(option));
  }
  return result;
}

ImportedConfiguration import_configuration(std::string_view text, std::string_view where) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  const std::string_view first = first_line(text);
  if (first.starts_with('{')) {
    const std::string plain = without_comments(text);
    const nlohmann::json document = parse_json(plain, where);
    const JsonObject object(document, std::string(where));
    if (object.has("schema")) return import_plan(text, where);
    return import_as(is_of_trainer(object) ? trainer : deepspeed, plain, where);
  }
  if (first.starts_with("--")) return import_as(megatron, text, where);
  if (first.starts_with('[')) return import_as(torchtitan, text, where);
  if (first.find(':') != first.npos) return import_yaml(text, where);
  throw InputError(fmt::format("{}: must be {}", where, readable));
}

}  // namespace zeroplan
