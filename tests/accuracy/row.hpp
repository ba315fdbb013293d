#pragma once
// One row of a measured corpus: what was run, as it was published, and what was measured. An empty
// optional was not published.

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cost_model/question/model.hpp"

namespace zeroplan::accuracy {

using Count = std::optional<std::int64_t>;
using Text = std::optional<std::string>;

/// The experts of a model as a row writes them.
struct ExpertShape {
  Count experts, topk, ffn;
  std::int64_t shared_ffn = 0;
  Count dense_layers;
  bool every_layer = true;  // false: a pattern of layers that the row gives as a formula
  Count etp;
  bool padded_to_capacity = false;
};

struct ModelShape {
  std::string name;
  std::string family;  // Hugging Face `model_type`, where a row says it
  Count layers, hidden, heads, kv_heads, ffn;
  Count vocab;         // ids of the tokenizer
  Count padded_vocab;  // rows of the embedding that were allocated
  Count head_dim, max_positions;
  std::optional<bool> gated, tied, bias, learned_positions;
  bool qkv_bias = false;
  bool qk_norm = false;
  bool parallel_attention = false;
  bool embedding_norm = false;
  Text norm;
  std::optional<ExpertShape> experts;
  std::optional<MlaSpec> latent;
  std::string config;  // what a config.json says, where the row has it: then all of the above
};

/// What divides the model states.
struct Sharding {
  Count stage;
  Text gradient_type;
  Count degree;  // ranks that share one copy of the states, context-parallel ranks included
  Text reshard_after_forward;
  Count reduce_bucket_size;  // elements
  bool offload = false;
};

struct RecomputeChoice {
  Text kind, method;
  Count layers;
  std::vector<std::string> modules;
};

/// A memory figure. `rank` is the rank that reported it, `last_rank` that it was the last one;
/// with neither it is the highest of all ranks.
struct Measurement {
  double bytes = 0;
  Text what;  // the instrument in the publisher's words
  Count rank;
  bool last_rank = false;
  std::optional<double> reserved_bytes;  // where both figures were published
};

/// The same fact in the units that publishers use.
struct Throughput {
  std::optional<double> step_seconds;
  std::optional<double> tokens_per_second;  // of a GPU, as the next
  std::optional<double> flops_per_second;
  std::optional<double> mfu;

  bool published() const { return step_seconds || tokens_per_second || flops_per_second || mfu; }
};

enum class Outcome { ran, out_of_memory };

struct Row {
  std::string id, family, source, framework, version, notes;
  bool complete = false;  // its own fields determine the run
  Text gpu;
  ModelShape model;
  std::map<std::string, std::string> arguments;  // of the launch, without dashes; flags are "true"
  // Settings of the recipe that ran, by its names; lists with bars between their parts.
  std::map<std::string, std::string> completed;
  Count gpus, sequence, micro_batch, global_batch;
  Count dp, tp, pp, vpp, cp, ep, etp;
  std::optional<bool> sequence_parallel;
  Text schedule;  // of a pipeline; without it the runtime's own
  Sharding sharding;
  RecomputeChoice recompute;
  Text precision, optimizer, attention;
  bool compiled = false;  // torch.compile
  bool silent = false;    // one rank of many ran, and its collectives moved nothing
  Throughput throughput;
  Outcome outcome = Outcome::ran;
  std::optional<Measurement> measured;

  bool has_argument(std::string_view name) const { return arguments.contains(std::string(name)); }
  /// Value of a launch argument, or `otherwise` when it was not given.
  std::string argument(std::string_view name, std::string_view otherwise) const;
  /// The same as a whole number; `otherwise` also when it is none.
  std::int64_t argument(std::string_view name, std::int64_t otherwise) const;
};

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// A list as rows hold it, "a|b", as settings say one.
inline std::string with_commas(std::string list) {
  std::ranges::replace(list, '|', ',');
  return list;
}

/// Whether the launch arguments say layers of one half each.
inline bool is_hybrid(const Row& row) {
  return row.has_argument("hybrid-layer-pattern") || row.has_argument("hybrid-override-pattern");
}

/// Throws nlohmann::json::exception when a field is absent or of another type than a row has.
Row read_row(const nlohmann::json& json);

/// The files of tests/reference with published steps: what is fitted on, and held out.
inline constexpr std::array<const char*, 5> published_steps{"measured.jsonl", "measured_more.jsonl",
                                                            "timing.jsonl", "nvidia_tables.jsonl",
                                                            "nvidia_dgxc.jsonl"};

/// Every row of a corpus, one JSON object a line. Throws InputError with path and line.
std::vector<Row> read_corpus(const std::filesystem::path& path);

}  // namespace zeroplan::accuracy
