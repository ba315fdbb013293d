// How does the Trainer say what FSDP does? Front door: read_trainer_fsdp.
#include "presets/configuration/trainer_fsdp.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

constexpr std::string_view config = "fsdp_config.";

std::string in_config(std::string_view key) {
  return std::string(config) + std::string(key);
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(" ,", at), text.size());
    if (end > at) words.push_back(lower_case(text.substr(at, end - at)));
    at = end + 1;
  }
  return words;
}

// What is read without `fsdp` being there is never used.
void drop_config(Entries& entries) {
  std::vector<Entry> rest = entries.list();
  std::erase_if(rest, [](const Entry& entry) { return entry.key.starts_with(config); });
  entries = Entries(std::move(rest), entries.where());
}

// The strategy, which must be said once.
void choose(std::string& strategy, const std::string& word, const Entries& entries) {
  for (const std::string_view whole : {"full_shard", "shard_grad_op"}) {
    const bool hybrid = word == (whole == "full_shard" ? "hybrid_shard" : "hybrid_shard_zero2");
    if (!hybrid) continue;
    entries.fail(
        fmt::format("fsdp {}: shards within a node, whose size the file does not say: write {}, "
                    "and give --hsdp with the GPUs of a node",
                    in_quotes(word), whole));
  }
  if (word != "full_shard" && word != "shard_grad_op" && word != "no_shard") {
    entries.fail(
        fmt::format("fsdp {}: must be full_shard, shard_grad_op, no_shard, offload or auto_wrap",
                    in_quotes(word)));
  }
  if (!strategy.empty() && strategy != word) {
    entries.fail(fmt::format("fsdp: {} and {} are two strategies", strategy, word));
  }
  strategy = word;
}

bool switched_on(Entries& entries, std::string_view key) {
  return entries.take_if(in_config(key), {"true", "True"}).has_value();
}

void read_units(Entries& entries, bool wraps, TrainerFsdp& fsdp) {
  const auto policy = entries.text(in_config("auto_wrap_policy"));
  const std::string name = lower_case(policy.value_or(wraps ? "transformer_based_wrap" : ""));
  entries.take(in_config("auto_wrap_policy"));
  if (name == "no_wrap") {
    entries.fail(
        fmt::format("fsdp_config.auto_wrap_policy {}: the whole model as one unit is not "
                    "modelled",
                    in_quotes(*policy)));
  }
  const bool by_size = entries.has(in_config("min_num_params")) || name == "size_based_wrap";
  if (by_size) fsdp.notes.emplace_back("fsdp: units by size are taken for units of a layer");
  if (name.empty()) {
    fsdp.notes.emplace_back(
        "fsdp without auto_wrap: taken for units of a layer, as Transformers 5.23 makes them; 4.57 "
        "makes the whole model one unit, and needs more");
  }
}

}  // namespace

std::string_view layers_to_name(const ModelSpec& model) {
  if (model.family == "qwen3_5_text") return "Qwen3_5DecoderLayer";
  return model.family == "qwen3_5_moe_text" ? "Qwen3_5MoeDecoderLayer" : "";
}

TrainerFsdp read_trainer_fsdp(Entries& entries) {
  const std::string said = entries.take("fsdp").value_or("");
  TrainerFsdp fsdp{.asked = !said.empty() && said != "false"};
  if (!fsdp.asked) {
    drop_config(entries);
    return fsdp;
  }
  std::string strategy;
  bool wraps = false;
  for (const std::string& word : words_of(said)) {
    if (word == "offload") {
      fsdp.offloads = true;
    } else if (word == "auto_wrap") {
      wraps = true;
    } else if (word != "true") {
      choose(strategy, word, entries);
    }
  }
  // Of FSDP2 reshard_after_forward says whether it does, which goes before the word of `fsdp`; of
  // FSDP1 it is such a word.
  const std::string reshards =
      lower_case(entries.take(in_config("reshard_after_forward")).value_or(""));
  const bool keeps = reshards == "false";
  if (!reshards.empty() && !keeps && reshards != "true") choose(strategy, reshards, entries);
  if (strategy == "no_shard") {
    fsdp.notes.emplace_back("fsdp 'no_shard': taken for DDP");
  } else {
    fsdp.shards = true;
    const bool by_word = strategy == "shard_grad_op" && reshards != "true";
    fsdp.zero = keeps || by_word ? ZeroStage::gradients : ZeroStage::parameters;
  }
  for (const char* key : {"xla", "xla_fsdp_v2", "xla_fsdp_grad_ckpt"}) {
    entries.take_if(in_config(key), {"false", "False"});
  }
  if (entries.has(in_config("xla"))) entries.fail("fsdp_config.xla: not on GPUs");
  entries.take_if(in_config("min_num_params"), {"0"});
  for (const char* key : {"cpu_offload", "offload_params"}) {
    if (switched_on(entries, key)) fsdp.offloads = true;
  }
  fsdp.checkpoints = switched_on(entries, "activation_checkpointing");
  for (const char* key : {"cpu_offload", "offload_params", "activation_checkpointing"}) {
    entries.take_if(in_config(key), {"false", "False"});
  }
  if (entries.take(in_config("version")) != "2") {
    fsdp.notes.emplace_back(
        "fsdp: taken for FSDP2, which Transformers 5.23 runs; older ones run FSDP1 unless "
        "fsdp_config.version is 2");
  }
  read_units(entries, wraps, fsdp);
  return fsdp;
}

}  // namespace zeroplan
