#pragma once
// Private to presets: what every format's mapping is made with. A format is two functions beside
// each other, one that writes a problem as entries and one that reads them.

#include "presets/configuration.hpp"
#include "presets/configuration/entries.hpp"
#include "presets/runtime.hpp"

namespace zeroplan {

inline constexpr std::string_view plan_schema = "zeroplan.fit/1";
inline constexpr std::string_view sweep_schema = "zeroplan.sweep/1";

/// The formats that are read, for complaints.
inline constexpr std::string_view readable_formats =
    "a plan or DeepSpeed's or the Trainer's JSON, Megatron-LM's arguments or the Trainer's or a "
    "script with them, torchtitan's TOML or Python, YAML of Accelerate, the Trainer, axolotl, "
    "LLaMA-Factory, NeMo or nanotron, or a recipe of Megatron-Bridge";

/// Adds to an import what nobody took of the entries.
void add_left_over(ImportedConfiguration& imported, const Entries& entries);

/// Options while a file is read.
class Meaning {
 public:
  explicit Meaning(Runtime runtime);

  void say(std::string_view flag, std::string_view value);
  void say(std::string_view flag, std::int64_t value);
  /// Says an option; nothing for an absent value.
  void say_if(std::string_view flag, const std::optional<std::string>& value);
  void say_if(std::string_view flag, std::optional<std::int64_t> value);

  /// What the file has no key for: it is so where the code that reads the file does no more.
  void leave_open(std::string_view flag, std::string_view value);

  /// A setting of the runtime; at its default it is not said. A value that the setting does not
  /// take is not understood.
  void set(std::string_view key, std::string_view value);
  /// Says a setting of the runtime; nothing for an absent value.
  void set_if(std::string_view key, const std::optional<std::string>& value);

  void about_model(std::vector<std::string> keys);
  /// Something that is taken for what is near it.
  void note(std::string what);
  /// Something that is not taken for all it says.
  void not_understood(std::string what);

  /// What the entries leave over is not understood. Throws InputError where no key of them was one
  /// of the format's: other programs write as it does.
  ImportedConfiguration finish(ConfigurationFormat format, const Entries& entries);

 private:
  Runtime runtime_;
  ImportedConfiguration result_;
  std::vector<Override> settings_;
};

/// Megatron-LM's arguments.
std::vector<Entry> to_megatron(const Problem& problem);
/// Megatron-LM's arguments, with those fields of its configuration for which it has no argument.
std::vector<Entry> to_megatron_fields(const Problem& problem);
ImportedConfiguration from_megatron(Entries entries);

std::vector<Entry> to_torchtitan(const Problem& problem);
ImportedConfiguration from_torchtitan(Entries entries);

std::vector<Entry> to_deepspeed(const Problem& problem);
ImportedConfiguration from_deepspeed(Entries entries);

std::vector<Entry> to_trainer(const Problem& problem);
ImportedConfiguration from_trainer(Entries entries);

std::vector<Entry> to_nanotron(const Problem& problem);
ImportedConfiguration from_nanotron(Entries entries);

}  // namespace zeroplan
