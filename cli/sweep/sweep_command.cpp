// zeroplan sweep: which layout should I use? Front door: run_sweep.
#include <fmt/format.h>

#include <functional>
#include <stdexcept>

#include "cli/commands.hpp"
#include "cli/out/standard_output.hpp"
#include "cli/out/written_file.hpp"
#include "cli/page/page_document.hpp"
#include "cli/page/typed_line.hpp"
#include "cli/request/plan_file.hpp"
#include "cli/request/read_request.hpp"
#include "cli/sweep/sweep_progress.hpp"
#include "cli/sweep/sweep_report.hpp"
#include "planner/candidates.hpp"
#include "planner/nearest.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

// All points broke a rule: why the first one did, and what to leave open where no single value
// would do.
[[noreturn]] void refuse(const Request& request, const SweepAnswer& answer) {
  const LayoutChoice first = candidates(request).front();
  const auto violation = first_violation(complete(request, first));
  if (violation) throw InputError(refusal_message(request, first, *violation));
  std::string message = "the runtime can execute no layout of this space";
  for (const std::vector<Field>& fields : answer.releases) {
    for (const Field field : fields) message += fmt::format("; leave --{} open", name_of(field));
    break;
  }
  throw InputError(message);
}

}  // namespace

ExitCode run_sweep(const SweepArguments& typed, const OutputOptions& output) {
  SweepArguments arguments = typed;
  const std::optional<CostQuestion> cost = read_cost(arguments.cost);
  check_outputs({{"--save", arguments.save},
                 {"--html", arguments.page.html},
                 {"--markdown", arguments.page.markdown}},
                files_read(arguments.layout));
  std::vector<std::string> notes;
  if (arguments.page.wanted() && arguments.layout.model == "-") {  // a page asks more than once
    arguments.layout = with_plan(arguments.layout, notes);
  }
  SweepQuestion question = read_question(arguments, notes);
  if (question.request.model.layers == 0) {
    throw InputError(
        fmt::format("model {}: a size alone has no layers to divide or to time; sweep "
                    "needs a model",
                    arguments.layout.model));
  }
  SweepAnswer answer;
  {
    SweepProgress progress;
    answer = sweep(question, std::ref(progress));
  }
  const SearchResult& s = answer.search;
  // Where some lack memory too, a field to leave open says more than a rule.
  const bool has_remedy = s.rejected.contains(bound_too_large) && !answer.releases.empty();
  for (Plan& plan : answer.plans) {
    plan.answer.origin = question.request.origin;
    plan.answer.assumptions.insert(plan.answer.assumptions.end(), notes.begin(), notes.end());
  }
  if (s.stopped) {
    const std::string stopped = "stopped before all layouts were looked at";
    if (answer.plans.empty()) throw std::runtime_error(stopped + "; none was found to fit yet");
    fmt::print(stderr, "zeroplan: {}; this is the best so far\n", stopped);
  } else if (!answer.executable && !has_remedy) {
    refuse(question.request, answer);
  }
  const auto json = [&] { return sweep_json(answer, question, cost); };
  if (!arguments.save.empty()) write_file(arguments.save, json());
  if (arguments.page.wanted()) {
    write_pages(arguments.page,
                sweep_page(answer, question, {"sweep", typed_line(typed), arguments.layout, cost}));
  }
  write_in_form(
      output, json, [&] { return sweep_csv(answer); },
      [&] {
        return answer.plans.empty()
                   ? no_plan_text(answer, question, output.quiet)
                   : sweep_text(answer, question, cost, {wants_color(output), output.quiet});
      });
  return answer.plans.empty() ? ExitCode::no : ExitCode::yes;
}

}  // namespace zeroplan
