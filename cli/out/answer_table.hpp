#pragma once
// Answers to several questions, a row each.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/out/cost.hpp"
#include "cli/out/exit_code.hpp"
#include "cli/request/variants.hpp"
#include "planner/fit.hpp"

namespace zeroplan {

struct TableRow {
  std::vector<TypedOption> values;
  std::optional<FitAnswer> answer;
  std::string refusal;  // why there is none
};

/// The answers of `answer`, which is empty where no layout fits, in the form that was asked for.
/// Where each question is refused, throws the first InputError.
ExitCode write_table(const std::vector<Variant>& questions,
                     const std::function<std::optional<FitAnswer>(const LayoutArguments&)>& answer,
                     const std::optional<CostQuestion>& cost,
                     const OutputOptions& output);

/// What varies, then verdict, memory, speed and layout of each; in so many letters, 0: any.
std::string table_text(const std::vector<TableRow>& rows,
                       const std::optional<CostQuestion>& cost,
                       std::size_t width);

/// Schema zeroplan.table/1: `rows`, each with its `options` and the fields of zeroplan.fit/1, or
/// `refused`.
std::string table_json(const std::vector<TableRow>& rows, const std::optional<CostQuestion>& cost);

std::string table_csv(const std::vector<TableRow>& rows);

}  // namespace zeroplan
