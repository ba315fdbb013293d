#pragma once
// What the rows of paper_cases.jsonl give, as the nouns of the cost model.

#include <cmath>
#include <map>
#include <optional>
#include <string>

#include "cost_model/question/problem.hpp"
#include "presets/runtime.hpp"
#include "tests/gpt.hpp"
#include "tests/papers/case.hpp"

namespace zeroplan::papers {

inline std::int64_t whole(const Json& inputs, const char* key) {
  return static_cast<std::int64_t>(std::llround(inputs.at(key).get<double>()));
}

inline std::int64_t whole_or(const Json& inputs, const char* key, std::int64_t otherwise) {
  return inputs.contains(key) ? whole(inputs, key) : otherwise;
}

inline ModelSpec gpt(const Json& in) {
  return tests::gpt({.layers = whole(in, "layers"),
                     .hidden = whole(in, "hidden"),
                     .heads = whole_or(in, "heads", 1),
                     .sequence = whole_or(in, "seq", 0),
                     .vocab = whole_or(in, "vocab", 0)});
}

// ZB-1p is found automatically within the memory of 1F1B, as ZB-H1 is by hand.
inline std::optional<Schedule> schedule_of(const std::string& name) {
  static const std::map<std::string, Schedule> names{{"1f1b", Schedule::one_f_one_b},
                                                     {"zbh1", Schedule::zb_h1},
                                                     {"zb1p", Schedule::zb_h1},
                                                     {"zbh2", Schedule::zb_h2},
                                                     {"interleaved-1f1b", Schedule::interleaved},
                                                     {"dualpipe", Schedule::dualpipe}};
  const auto found = names.find(name);
  return found == names.end() ? std::nullopt : std::optional(found->second);
}

// A model of which the paper gives the size alone.
inline ModelSpec of_size(double parameters) {
  ModelSpec model{.name = "size", .hidden_size = 1, .vocab_size = std::llround(parameters)};
  model.tied_embeddings = true;
  model.final_norm = false;
  model.attention = {.heads = 1, .kv_heads = 1};
  return model;
}

inline Problem problem(Runtime runtime, ModelSpec model) {
  Problem p{.model = std::move(model), .runtime = load_runtime(runtime, {})};
  p.training = {.sequence_length = 1, .global_batch = 1};
  return p;
}

/// A number of bytes in the unit of the row's printed value.
inline double in_unit(double bytes, const Json& row) {
  const auto unit = row.at("expect").at("unit").get<std::string>();
  if (unit.starts_with("GiB")) return bytes / static_cast<double>(gibi);
  if (unit.starts_with("MiB")) return bytes / static_cast<double>(mebi);
  if (unit.starts_with("GB")) return bytes / 1e9;
  if (unit.starts_with("TB")) return bytes / 1e12;
  return bytes;
}

/// Answers a quantity of activation memory from Megatron-Core's step program; empty for others.
std::optional<Answer> activation_answer(const std::string& quantity, const Json& row);

// What ranks send each other.
std::optional<Answer> traffic_answer(const std::string& quantity, const Json& row);

// FLOPs, utilisation, pipeline bubbles, days.
std::optional<Answer> time_answer(const std::string& quantity, const Json& row);

}  // namespace zeroplan::papers
