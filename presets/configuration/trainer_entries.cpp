// Where may arguments of the Trainer stand? Front doors: is_of_trainer, trainer_arguments,
// with_named_files.
#include "presets/configuration/trainer_entries.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"
#include "presets/text_file.hpp"

namespace zeroplan {
namespace {

template <std::size_t n>
bool is_one_of(std::string_view name, const std::string_view (&names)[n]) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// The first name of a nested key.
std::string_view first_name(const Entry& entry) {
  return std::string_view(entry.key).substr(0, entry.key.find('.'));
}

ConfigValue typed(const ConfigValue& value) {
  if (value.is_null()) return true;
  if (!value.is_string()) return value;
  const std::string text = lower_case(value.get<std::string>());
  if (text == "true" || text == "false") return text == "true";
  return value;
}

std::vector<Entry> read_named(const Entries& entries, const Entry& named) {
  if (!named.value.is_string()) {
    entries.fail(fmt::format("{}: must be the name of a file, or an object", named.key));
  }
  const auto text = named.value.get<std::string>();
  const std::size_t start = text.find_first_not_of(" \t");
  const bool inside = start != text.npos && text[start] == '{';
  try {
    return inside ? read_json(without_comments(text), named.key)
                  : read_json(without_comments(read_text_file(text)), in_quotes(text));
  } catch (const InputError& error) {
    entries.fail(fmt::format("{}: {}", named.key, error.what()));
  }
}

}  // namespace

// output_dir is what other programs say, too.
bool is_of_trainer(const std::vector<Entry>& entries) {
  constexpr std::string_view keys[] = {"deepspeed",
                                       "fsdp",
                                       "fsdp_config",
                                       "optim",
                                       "gradient_checkpointing",
                                       "activation_checkpointing",
                                       "per_device_train_batch_size"};
  return std::any_of(entries.begin(), entries.end(), [&](const Entry& entry) {
    // Megatron-DeepSpeed's flag stands alone; DeepSpeed's own section is no plain value.
    if (entry.key == "deepspeed") return entry.value.is_string();
    if (entry.key.starts_with("activation_checkpointing.")) return false;
    return is_one_of(first_name(entry), keys);
  });
}

std::vector<Entry> trainer_arguments(const std::vector<Entry>& entries) {
  std::vector<Entry> named;
  for (const Entry& entry : entries) {
    Entry own = entry;
    std::replace(own.key.begin(), own.key.end(), '-', '_');
    // A flag alone says yes; `deepspeed` takes a value.
    if (own.key != "deepspeed" || !own.value.is_null()) own.value = typed(entry.value);
    named.push_back(std::move(own));
  }
  return named;
}

Entries with_named_files(const Entries& entries) {
  std::vector<Entry> all;
  for (const Entry& entry : entries.list()) {
    const bool names = entry.key == "deepspeed" || entry.key == "fsdp_config";
    const bool off = entry.value == "" || entry.value == false;
    if (!names) all.push_back(entry);
    if (!names || off) continue;
    for (Entry& own : read_named(entries, entry)) {
      all.push_back({entry.key + "." + own.key, std::move(own.value)});
    }
  }
  constexpr std::string_view twice = "fsdp_config.fsdp_";
  for (Entry& entry : all) {
    if (entry.key.starts_with(twice)) entry.key.erase(twice.find('.') + 1, 5);
  }
  return Entries(std::move(all), entries.where());
}

}  // namespace zeroplan
