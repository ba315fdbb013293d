#pragma once
// Which layouts a runtime can execute. Rules are rows of a table, one for each runtime
// (cost_model/runtime/<name>/rules.cpp), tried in a fixed order, so that a rejected layout always
// counts under the same, first failing rule.

#include <array>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cost_model/question/problem.hpp"
#include "cost_model/question/runtime_code.hpp"

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
  model,
  stage_split,
  recompute_layers,
  recompute_modules,
  loss_chunks,
  knobs,  // how the runtime exchanges: overlap, buckets, resharding
};

template <>
struct Spellings<Field> {
  static constexpr std::array<std::string_view, 24> value{"gpus",
                                                          "tp",
                                                          "pp",
                                                          "vpp",
                                                          "cp",
                                                          "ep",
                                                          "etp",
                                                          "zero",
                                                          "hsdp",
                                                          "sequence-parallel",
                                                          "micro-batch",
                                                          "global-batch",
                                                          "seq",
                                                          "schedule",
                                                          "recompute",
                                                          "precision",
                                                          "optimizer",
                                                          "offload",
                                                          "model",
                                                          "stage-split",
                                                          "recompute-layers",
                                                          "recompute-modules",
                                                          "loss-chunks",
                                                          "settings"};
};

struct Violation {
  std::string_view rule;  // identifier of the row
  Field field;
  std::string reason;  // what is wrong and why, one clause
};

/// Fields as the bits of a set.
constexpr unsigned set_of(std::initializer_list<Field> fields) {
  unsigned bits = 0;
  for (const Field field : fields) bits |= 1U << static_cast<unsigned>(field);
  return bits;
}

struct Rule {
  std::string_view id;
  Field field;     // what a person would change
  unsigned reads;  // every field of the layout that the answer can depend on
  /// The reason this problem breaks the rule; empty when it does not.
  std::optional<std::string> (*broken)(const Problem&);
};

/// In which order a search chooses the fields of a layout: what most rules read comes first.
/// dp follows from the first of them, and the global batch where it is open from all before it.
inline constexpr std::array<Field, 18> choice_order{Field::micro_batch,
                                                    Field::tp,
                                                    Field::cp,
                                                    Field::pp,
                                                    Field::ep,
                                                    Field::etp,
                                                    Field::vpp,
                                                    Field::sequence_parallel,
                                                    Field::stage_split,
                                                    Field::schedule,
                                                    Field::loss_chunks,
                                                    Field::recompute,
                                                    Field::recompute_modules,
                                                    Field::recompute_layers,
                                                    Field::zero,
                                                    Field::offload,
                                                    Field::hsdp,
                                                    Field::knobs};

/// How many fields of choice_order must be chosen before the rule has an answer.
constexpr std::size_t depth(const Rule& rule) {
  std::size_t deepest = 0;
  for (std::size_t i = 0; i < choice_order.size(); ++i) {
    if ((rule.reads & set_of({choice_order[i]})) != 0) deepest = i + 1;
  }
  return deepest;
}

/// The rules of one runtime, in the order they are tried: by depth, so that the first one that a
/// whole layout breaks is also the first that a search meets, and within a depth the grid, the
/// model's shape, the pipeline, the batch, features that exclude each other. Rows in another order
/// do not compile.
struct RuleBook {
  template <std::size_t N>
  consteval explicit RuleBook(const Rule (&rows)[N]) : rules(rows) {
    std::size_t next = 0;
    for (std::size_t d = 0; d < starts.size(); ++d) {
      while (next < N && depth(rows[next]) < d) ++next;
      starts[d] = next;
    }
    for (std::size_t i = 1; i < N; ++i) {
      if (depth(rows[i]) < depth(rows[i - 1])) throw "a rule stands below one that reads more";
    }
  }

  std::span<const Rule> of_depth(std::size_t wanted) const {
    return rules.subspan(starts[wanted], starts[wanted + 1] - starts[wanted]);
  }

  std::span<const Rule> rules;
  /// The place of the first rule of each depth, and the end.
  std::array<std::size_t, choice_order.size() + 2> starts{};
};

/// Schedules as the bits of a set.
constexpr unsigned set_of_schedules(std::initializer_list<Schedule> schedules) {
  unsigned bits = 0;
  for (const Schedule s : schedules) bits |= 1U << static_cast<unsigned>(s);
  return bits;
}
inline constexpr unsigned every_schedule = ~0U;

/// The rules of the runtime that a problem names.
const RuleBook& rules_of(const RuntimeSpec& runtime);

/// The first rule of this depth that the layout breaks; null where there is none. Reads no field
/// that is chosen later.
const Rule* first_broken(const Problem& problem, std::size_t depth);

/// The first rule that the layout breaks; empty when the runtime can execute it.
std::optional<Violation> first_violation(const Problem& problem);

}  // namespace zeroplan
