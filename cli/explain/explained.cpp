// What is explained? Front door: explained.
#include "cli/explain/explained.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/out/answer.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

std::string row_of(const std::optional<std::string>& asked) {
  if (!asked) return "";
  std::string row = *asked;
  std::replace(row.begin(), row.end(), ' ', '_');
  const std::vector<std::string> all = explained_rows();
  if (std::find(all.begin(), all.end(), row) != all.end()) return row;
  throw InputError(fmt::format("--row {}: must be one of {}; nearest is {}", in_quotes(*asked),
                               fmt::join(all, ", "), nearest(row, all)));
}

}  // namespace

Explained explained(const ExplainArguments& arguments) {
  std::string row = row_of(arguments.row);
  Explained of{.answer = answer_of(arguments.layout), .stage = 0, .explanation = {}, .row = row};
  of.stage = stage_of(arguments.stage, of.answer.estimate);
  const Problem& problem = of.answer.problem;
  const Evaluator evaluator(problem);
  of.explanation =
      explain(problem, evaluator, stages(problem)[of.stage], of.answer.estimate.stages[of.stage]);
  return of;
}

}  // namespace zeroplan
