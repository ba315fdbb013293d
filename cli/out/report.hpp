#pragma once
// An answer as text for people, as JSON for programs, and as rows for spreadsheets.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/out/cost.hpp"
#include "cli/out/terminal.hpp"
#include "planner/fit.hpp"

namespace zeroplan {

/// The fixed document zeroplan.fit/1; also `settings`: those of the runtime that are not at their
/// defaults, and `hsdp` in a layout that has it. `communication` is of a rank of the worst stage.
/// Not modelled yet and null: `exposed_seconds`, and `step`.
/// With `cost` also `training`; with the memory of a node's host also whether what is offloaded
/// fits there.
std::string fit_json(const FitAnswer& answer,
                     const std::optional<CostQuestion>& cost = std::nullopt,
                     std::optional<Bytes> host_memory = std::nullopt);

/// What is said beside an answer.
struct AnswerExtras {
  std::string next;  // the command that asks about the smallest number of GPUs
  std::optional<CostQuestion> cost;
  std::optional<Bytes> host_memory = {};  // of a node
};

/// Verdict first, then rows that add up, assumptions, and what would make it fit.
std::string fit_text(const FitAnswer& answer, const AnswerExtras& extras, TextStyle style);

/// The layout on one line.
std::string layout_text(const Problem& problem);

/// One row a pipeline stage, bytes in each category.
std::string fit_csv(const FitAnswer& answer);

/// A name as people read it: optimizer_states as optimizer states.
std::string spaced(std::string_view name);

/// 72706203648 as 72,706,203,648.
std::string with_thousands(std::int64_t value);

}  // namespace zeroplan
