// zeroplan explain: where does each byte come from? Front door: run_explain.
#include "cli/commands.hpp"
#include "cli/explain/explained.hpp"
#include "cli/out/standard_output.hpp"

namespace zeroplan {

ExitCode run_explain(const ExplainArguments& arguments, const OutputOptions& output) {
  const Explained found = explained(arguments);
  if (arguments.ranks) {
    const Problem& problem = found.answer.problem;
    write_in_form(
        output, [&] { return ranks_json(problem); }, [&] { return ranks_csv(problem); },
        [&] { return ranks_text(problem); });
    return ExitCode::yes;
  }
  const ExplainedAnswer shown = found.view();
  write_in_form(
      output, [&] { return explain_json(shown); }, [&] { return explain_csv(shown); },
      [&] { return explain_text(shown, output.quiet); });
  return found.answer.estimate.verdict == Verdict::does_not_fit ? ExitCode::no : ExitCode::yes;
}

}  // namespace zeroplan
