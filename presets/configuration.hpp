#pragma once
// Files that configure a training run: from zeroplan's words, and back to them.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// An option as it is typed: {"--tp", "8"}, {"--set", "reduce_bucket_size=5e8"}.
struct TypedOption {
  std::string flag;
  std::string value;
  friend bool operator==(const TypedOption&, const TypedOption&) = default;
  friend auto operator<=>(const TypedOption&, const TypedOption&) = default;
};

/// Every option that says this problem, beside MODEL and --gpus.
std::vector<TypedOption> options_of(const Problem& problem);

/// megatron: arguments, one a line. megatron-bridge: a recipe in Python that starts. torchtitan:
/// TOML, or Python where its checkout reads that. accelerate: what `accelerate config` writes.
/// deepspeed: its JSON. trainer: TrainingArguments of Hugging Face's Trainer as JSON, with
/// DeepSpeed's inside where that runs. nanotron: YAML. Sources: Megatron-LM @d98e8a64dd
/// training/arguments.py and core/transformer/ transformer_config.py; Megatron-Bridge @067f987df
/// recipes/common.py, training/config.py; torchtitan 0.2.2 config/job_config.py, @b5bcd76c6
/// config/configs.py; accelerate @16cb6eb8 commands/config/config_args.py; DeepSpeed @edaa72212
/// runtime/zero/config.py, offload_config.py; transformers 5.23 training_args.py, and 4.57 where it
/// differs; nanotron config/config.py, parallelism_config.py.
enum class ConfigurationFormat {
  megatron,
  megatron_bridge,
  torchtitan,
  deepspeed,
  trainer,
  accelerate,
  nanotron
};
template <>
struct Spellings<ConfigurationFormat> {
  static constexpr std::array<std::string_view, 7> value{
      "megatron", "megatron-bridge", "torchtitan", "deepspeed",
      "trainer",  "accelerate",      "nanotron"};
};

/// The formats that configure this runtime, the usual one first; none where it reads no file.
std::vector<ConfigurationFormat> formats_of(const RuntimeSpec& runtime);

struct ExportedConfiguration {
  std::string text;
  std::vector<TypedOption> unsaid;  // choices that the format has no key for, or not this value
  std::vector<std::string> other_model = {};  // what the model that it builds has otherwise
};

/// The problem as such a file. What it leaves unsaid is found by importing it again. Assumes a
/// format of its runtime.
ExportedConfiguration export_configuration(const Problem& problem, ConfigurationFormat format);

/// The command that starts a run on these GPUs with such a file, FILE in it; TRAIN.py is code of
/// one's own. Sources: Megatron-LM @d98e8a64dd examples/, Megatron-Bridge @067f987df
/// tutorials/recipes/llama/00_quickstart_pretrain.py, torchtitan 0.2.2 run_train.sh, DeepSpeed
/// @edaa72212 launcher/runner.py, transformers 5.23 hf_argparser.py (a file alone), nanotron
/// README.
std::string launch_line(const Problem& problem, ConfigurationFormat format);

/// What a file means.
struct ImportedConfiguration {
  std::string format;                      // what it was taken for: a ConfigurationFormat, or plan
  std::string model;                       // of a plan: the name it was made for; else empty
  std::string model_config = {};           // the model's config.json, where the file carries it
  std::optional<std::int64_t> ranks = {};  // that it starts
  std::string as = {};                     // of a plan: the model_type that this is read as
  std::string cluster_config = {};         // likewise its cluster file
  std::map<std::string, std::string> versions = {};  // of a plan: what it was made by
  std::vector<TypedOption> options;
  std::vector<TypedOption> left_open;        // no key says these: so it is where code does no more
  std::vector<std::string> about_model;      // keys that MODEL answers
  std::vector<std::string> notes;            // what was taken for something near it, as sentences
  std::vector<std::string> not_understood;   // keys, with their values, that change nothing here
  std::vector<std::string> immaterial = {};  // keys that change neither memory nor time
};

/// A file of any of these formats, or a plan, taken for what it looks like. The Trainer's
/// arguments may name files, which are read as the Trainer reads them: from the folder of the
/// process. `where` opens every message. Throws InputError.
ImportedConfiguration import_configuration(std::string_view text, std::string_view where);

/// A plan: what `fit --json` printed, or of what `sweep --json` did the plan of this row, from 1.
/// Throws InputError.
ImportedConfiguration import_plan(std::string_view text,
                                  std::string_view where,
                                  std::optional<std::int64_t> row = std::nullopt);

}  // namespace zeroplan
