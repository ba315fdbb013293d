// zeroplan explain: where does each byte come from? Front door: run_explain.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/commands.hpp"
#include "cli/explain/explain_report.hpp"
#include "cli/out/answer.hpp"
#include "cli/out/standard_output.hpp"
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

ExitCode run_explain(const ExplainArguments& arguments, const OutputOptions& output) {
  const std::string row = row_of(arguments.row);
  const FitAnswer answer = answer_of(arguments.layout);
  const std::size_t index = stage_of(arguments.stage, answer.estimate);
  const StageMemory& memory = answer.estimate.stages[index];
  const Evaluator evaluator(answer.problem);
  const ExplainedAnswer explained{
      answer, memory, explain(answer.problem, evaluator, stages(answer.problem)[index], memory),
      row};
  write_in_form(
      output, [&] { return explain_json(explained); }, [&] { return explain_csv(explained); },
      [&] { return explain_text(explained, output.quiet); });
  return answer.estimate.verdict == Verdict::does_not_fit ? ExitCode::no : ExitCode::yes;
}

}  // namespace zeroplan
