// Which function configures torchtitan so? Front door: write_torchtitan_python.
#include "presets/configuration/torchtitan_python.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "presets/configuration/torchtitan_float8.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"
#include "presets/runtime.hpp"

namespace zeroplan {
namespace {

// A model of the catalog: torchtitan's folder and flavor, and a function there that registers a
// whole configuration of that folder's models.
struct Flavor {
  std::string_view ours, folder, flavor, function;
};
constexpr std::array flavors{
    Flavor{"llama3-8b", "llama3", "8B", "llama3_8b"},
    Flavor{"llama3.1-8b", "llama3", "8B", "llama3_8b"},
    Flavor{"llama3-70b", "llama3", "70B", "llama3_70b"},
    Flavor{"llama3.1-70b", "llama3", "70B", "llama3_70b"},
    Flavor{"llama3.1-405b", "llama3", "405B", "llama3_405b"},
    Flavor{"llama3.2-1b", "llama3", "1B", "llama3_8b"},
    Flavor{"llama3.2-3b", "llama3", "3B", "llama3_8b"},
    Flavor{"qwen3-0.6b", "qwen3", "0.6B", "qwen3_0_6b"},
    Flavor{"qwen3-1.7b", "qwen3", "1.7B", "qwen3_1_7b"},
    Flavor{"qwen3-4b", "qwen3", "4B", "qwen3_1_7b"},
    Flavor{"qwen3-8b", "qwen3", "8B", "qwen3_1_7b"},
    Flavor{"qwen3-14b", "qwen3", "14B", "qwen3_14b"},
    Flavor{"qwen3-32b", "qwen3", "32B", "qwen3_32b"},
    Flavor{"qwen3-30b-a3b", "qwen3", "30B-A3B", "qwen3_30b_a3b"},
    Flavor{"qwen3-235b-a22b", "qwen3", "235B-A22B", "qwen3_30b_a3b"},
    Flavor{"deepseek-v2-lite", "deepseek_v3", "16B", "deepseek_v3_16b"},
    Flavor{"deepseek-v2", "deepseek_v3", "236B", "deepseek_v3_16b"},
    Flavor{"deepseek-v3", "deepseek_v3", "671B", "deepseek_v3_671b"},
    Flavor{"gpt-oss-20b", "gpt_oss", "20b", "gpt_oss_20b"},
    Flavor{"gpt-oss-120b", "gpt_oss", "120b", "gpt_oss_120b"},
};
constexpr Flavor unknown{"", "llama3", "FLAVOR", "llama3_8b"};

const Flavor& flavor_of(const Problem& p) {
  const auto* found = std::ranges::find(flavors, p.model.name, &Flavor::ours);
  return found == flavors.end() ? unknown : *found;
}

// What decides and is not said is another function's to say, or at torchtitan's default, which is
// written out here.
struct Deciding {
  std::string_view key;
  ConfigValue value;  // null: always among the entries
};
const std::vector<Deciding>& deciding() {
  static const std::vector<Deciding> all{
      {"training.enable_cpu_offload", false},
      {"training.dtype", nullptr},
      {"training.mixed_precision_param", nullptr},
      {"parallelism.data_parallel_replicate_degree", nullptr},
      {"parallelism.data_parallel_shard_degree", nullptr},
      {"parallelism.fsdp_reshard_after_forward", nullptr},
      {"parallelism.tensor_parallel_degree", nullptr},
      {"parallelism.context_parallel_degree", nullptr},
      {"parallelism.pipeline_parallel_degree", nullptr},
      {"parallelism.expert_parallel_degree", 1},
      {"compile.enable", nullptr},
      {"activation_checkpoint", nullptr},
      {"loss", nullptr},
  };
  return all;
}

bool has(const std::vector<Entry>& entries, std::string_view key) {
  return std::ranges::any_of(entries, [&](const Entry& entry) {
    return entry.key == key || entry.key.starts_with(std::string(key) + ".");
  });
}

// The keywords of a section's class.
std::string keywords(const std::vector<Entry>& entries, std::string_view section) {
  std::vector<std::string> list;
  for (const Entry& entry : entries) {
    if (!entry.key.starts_with(section)) continue;
    list.push_back(fmt::format("        {}={},\n", entry.key.substr(section.size()),
                               python_value(entry.value)));
  }
  return fmt::format("\n{}    ", fmt::join(list, ""));
}

struct Made {
  std::string imported;  // "FullAC"; empty: nothing is
  std::string text;
};

Made checkpointing(const Problem& p) {
  const Recompute recompute = p.layout.recompute;
  if (recompute == Recompute::none) return {"", "None"};
  const std::string policy = recompute == Recompute::full ? "FullAC" : "SelectiveAC";
  return {policy, policy + ".Config()"};
}

Made loss(const Problem& p) {
  const std::int64_t parts = p.runtime.fsdp2.loss_chunks;
  const std::string whole =
      "CrossEntropyLoss.Config(global_vocab_size=decoder_vocab_size(config.model_spec))";
  if (parts == 1) return {"CrossEntropyLoss", whole};
  return {"ChunkedLossWrapper, CrossEntropyLoss",
          fmt::format("ChunkedLossWrapper.Config(\n        loss_fn={},\n{}    )", whole,
                      parts > 1 ? fmt::format("        num_chunks={},\n", parts) : "")};
}

bool runs_without_graphs(const Problem& p) {
  const std::string said = setting_text(p.runtime, "training.disable_cuda_graphs");
  return said == "recipe" ? bars_graphs(p.layout.pp, p.layout.ep) : said == "true";
}

// What the model is built from.
std::string spec(const Problem& p, const Flavor& flavor) {
  if (p.training.precision != Precision::fp8) return fmt::format("\"{}\"", flavor.flavor);
  const std::string recipe = titan_float8::said_recipe(p);
  return fmt::format(
      "\n        \"{}\",\n        converters=[\n            Float8LinearConverter.Config(\n"
      "                {}filter_fqns=[\"lm_head\"], model_compile_enabled={}\n            )\n"
      "        ],\n    ",
      flavor.flavor, recipe.empty() ? "" : fmt::format("recipe_name=\"{}\", ", recipe),
      p.runtime.fsdp2.compiles_layers() ? "True" : "False");
}

std::vector<Entry> completed(const Problem& p, std::vector<Entry> entries) {
  for (const Deciding& one : deciding()) {
    if (one.value.is_null() || has(entries, one.key)) continue;
    entries.push_back({std::string(one.key), one.value});
  }
  const std::string_view graphs = "training.disable_cuda_graphs";
  std::erase_if(entries, [&](const Entry& entry) { return entry.key == graphs; });
  if (p.runtime.fsdp2.recipe_date >= titan_dates::captured_steps) {
    entries.push_back({std::string(graphs), runs_without_graphs(p)});
  }
  return entries;
}

}  // namespace

bool reads_python(const Problem& p) {
  return p.runtime.fsdp2.recipe_date >= titan_dates::python;
}

std::string write_torchtitan_python(const Problem& p, const std::vector<Entry>& entries) {
  const Flavor& flavor = flavor_of(p);
  const std::vector<Entry> all = completed(p, entries);
  const bool fp8 = p.training.precision == Precision::fp8;
  const Made policy = checkpointing(p);
  const Made cross_entropy = loss(p);
  std::set<std::string> lines{
      "from torchtitan.config import CompileConfig, ParallelismConfig",
      "from torchtitan.models.common.config_utils import decoder_vocab_size",
      fmt::format("from torchtitan.models.{} import model_registry", flavor.folder),
      fmt::format("from torchtitan.models.{}.config_registry import {}", flavor.folder,
                  flavor.function),
      "from torchtitan.trainer import Trainer",
      "from torchtitan.components.loss import " + cross_entropy.imported};
  if (fp8) lines.insert("from torchtitan.components.quantization import Float8LinearConverter");
  if (!policy.imported.empty()) {
    lines.insert("from torchtitan.distributed.activation_checkpoint import " + policy.imported);
  }
  const std::int64_t date = p.runtime.fsdp2.recipe_date;
  std::string text = fmt::format(
      "# torchtitan of {:04}-{:02}-{:02} (--set recipe_date)\n{}\n\n\ndef plan() -> "
      "Trainer.Config:\n",
      date / 10'000, date / 100 % 100, date % 100, fmt::join(lines, "\n"));
  text += fmt::format("    config = {}()  # data, tokenizer, learning rate and steps\n",
                      flavor.function);
  if (flavor.ours.empty()) {
    text += fmt::format("    # {} is no model of torchtitan's: the flavor is yours to add\n",
                        printable(p.model.name));
  }
  text += fmt::format("    config.model_spec = model_registry({})\n", spec(p, flavor));
  text += fmt::format("    config.loss = {}\n", cross_entropy.text);
  for (const std::string_view part : {"training.", "optimizer.implementation"}) {
    for (const Entry& entry : all) {
      if (!entry.key.starts_with(part)) continue;
      text += fmt::format("    config.{} = {}\n", entry.key, python_value(entry.value));
    }
  }
  text += fmt::format("    config.parallelism = ParallelismConfig({})\n",
                      keywords(all, "parallelism."));
  text += fmt::format("    config.activation_checkpoint = {}\n", policy.text);
  text += fmt::format("    config.compile = CompileConfig({})\n", keywords(all, "compile."));
  return text + "    return config\n";
}

std::vector<Entry> read_torchtitan_python(PythonConfiguration file, std::string_view where) {
  // Classes say nothing but for what is chosen by them.
  std::erase_if(file.entries, [](const Entry& entry) {
    return entry.key != "activation_checkpoint" && entry.key != "loss" && entry.value.is_string() &&
           entry.value.get<std::string>().ends_with(".Config");
  });
  if (std::ranges::find(file.none, "activation_checkpoint") != file.none.end()) {
    file.entries.push_back({"activation_checkpoint.mode", "none"});
  }
  if (file.base.empty()) return std::move(file.entries);
  const auto open = std::ranges::find_if(
      deciding(), [&](const Deciding& one) { return !has(file.entries, one.key); });
  const bool batch = has(file.entries, "training.num_tokens_per_microbatch_per_dp_rank") ||
                     has(file.entries, "training.local_batch_size");
  if (open != deciding().end() || !batch) {
    throw InputError(
        fmt::format("{}: {}() says the rest, {} first, and nothing is run: write it out", where,
                    printable(file.base), batch ? open->key : "the batch"));
  }
  return std::move(file.entries);
}

}  // namespace zeroplan
