#pragma once
// Answers to several questions, a row each.

#include <optional>
#include <string>
#include <vector>

#include "cli/fit/variants.hpp"
#include "cli/out/cost.hpp"
#include "planner/fit.hpp"

namespace zeroplan {

struct TableRow {
  std::vector<TypedOption> values;
  std::optional<FitAnswer> answer;
  std::string refusal;  // why there is none
};

/// What varies, then verdict, memory, speed and layout of each; in so many letters, 0: any.
std::string table_text(const std::vector<TableRow>& rows,
                       const std::optional<CostQuestion>& cost,
                       std::size_t width);

/// Schema zeroplan.table/1: `rows`, each with its `options` and the fields of zeroplan.fit/1, or
/// `refused`.
std::string table_json(const std::vector<TableRow>& rows, const std::optional<CostQuestion>& cost);

std::string table_csv(const std::vector<TableRow>& rows);

}  // namespace zeroplan
