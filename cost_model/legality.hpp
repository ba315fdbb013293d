#pragma once
// Which layouts a runtime can execute. Rules are rows of a table, tried in a fixed order, so that a
// rejected layout always counts under the same, first failing rule.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cost_model/problem.hpp"

namespace zeroplan {

/// What a person would change to satisfy a rule.
enum class Field {
  gpus,
  tp,
  pp,
  vpp,
  cp,
  ep,
  etp,
  zero,
  hsdp,
  sequence_parallel,
  micro_batch,
  global_batch,
  sequence_length,
  schedule,
  recompute,
  precision,
  optimizer,
  offload,
};

template <>
struct Spellings<Field> {
  static constexpr std::array<std::string_view, 18> value{
      "gpus",        "tp",           "pp",     "vpp",      "cp",
      "ep",          "etp",          "zero",   "hsdp",     "sequence-parallel",
      "micro-batch", "global-batch", "seq",    "schedule", "recompute",
      "precision",   "optimizer",    "offload"};
};

struct Violation {
  std::string_view rule;  // identifier of the row
  Field field;
  std::string reason;  // what is wrong and why, one clause
};

struct Rule {
  std::string_view id;
  unsigned runtimes;  // bit i: applies to the runtime with value i
  Field field;
  /// The reason this problem breaks the rule; empty when it does not.
  std::optional<std::string> (*broken)(const Problem&);
};

/// All rules, in the order they are tried: the grid, the model's shape, the pipeline, the batch,
/// features that exclude each other.
std::span<const Rule> rules();

/// The first rule that the layout breaks; empty when the runtime can execute it.
std::optional<Violation> first_violation(const Problem& problem);

}  // namespace zeroplan
