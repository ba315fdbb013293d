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
#include "cli/sweep/searched.hpp"
#include "cli/sweep/sweep_progress.hpp"
#include "cli/sweep/sweep_report.hpp"

namespace zeroplan {

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
  const Searched found = [&] {
    SweepProgress progress;
    return searched(arguments, std::ref(progress), std::move(notes));
  }();
  const SweepQuestion& question = found.question;
  const SweepAnswer& answer = found.answer;
  if (answer.search.stopped) {
    const std::string stopped = "stopped before all layouts were looked at";
    if (answer.plans.empty()) throw std::runtime_error(stopped + "; none was found to fit yet");
    fmt::print(stderr, "zeroplan: {}; this is the best so far\n", stopped);
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
        return answer.plans.empty() ? no_plan_text(answer, question, output.quiet)
                                    : sweep_text(answer, question, cost, text_style(output));
      });
  return answer.plans.empty() ? ExitCode::no : ExitCode::yes;
}

}  // namespace zeroplan
