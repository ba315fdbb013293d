// zeroplan sweep: which layout should I use? Front door: run_sweep.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <stdexcept>

#include "cli/batch/batch.hpp"
#include "cli/batch/line_question.hpp"
#include "cli/commands.hpp"
#include "cli/out/answer_table.hpp"
#include "cli/out/standard_output.hpp"
#include "cli/out/written_file.hpp"
#include "cli/page/page_document.hpp"
#include "cli/page/typed_line.hpp"
#include "cli/request/plan_file.hpp"
#include "cli/request/read_request.hpp"
#include "cli/request/variants.hpp"
#include "cli/sweep/searched.hpp"
#include "cli/sweep/sweep_progress.hpp"
#include "cli/sweep/sweep_report.hpp"
#include "planner/sweep/thread_team.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

ExitCode code_of(const SweepAnswer& answer) {
  return answer.plans.empty() ? ExitCode::no : ExitCode::yes;
}

constexpr auto to_the_end = [](const Progress&) { return true; };

// As many questions at once as one would have threads: short searches share them out badly.
ExitCode answer_batch(const SweepArguments& typed) {
  const std::size_t threads = read_threads(typed);
  const std::size_t workers = threads > 0 ? std::min(threads, all_cores()) : all_cores();
  return answer_lines(typed.batch, workers, [&](const std::string& line) {
    SweepArguments asked = question_of_line(typed, line);
    asked.threads = "1";
    const std::optional<CostQuestion> cost = read_cost(asked.cost);
    const Searched found = searched(asked, to_the_end);
    return BatchAnswer{sweep_json(found.answer, found.question, cost), code_of(found.answer)};
  });
}

// What each question would take.
ExitCode answer_all(const SweepArguments& typed,
                    const std::vector<Variant>& questions,
                    const std::optional<CostQuestion>& cost,
                    const OutputOptions& output) {
  if (typed.page.wanted() || !typed.save.empty()) {
    throw InputError(fmt::format(
        "sweep: --save, --html and --markdown are of one question, these are {}; leave them out, "
        "or the lists",
        questions.size()));
  }
  const auto take = [&](const LayoutArguments& layout) -> std::optional<FitAnswer> {
    SweepArguments asked = typed;
    asked.layout = layout;
    SweepAnswer answer = searched(asked, to_the_end).answer;
    if (answer.plans.empty()) return std::nullopt;
    return std::move(answer.plans[answer.recommended].answer);
  };
  return write_table(questions, take, cost, output);
}

}  // namespace

ExitCode run_sweep(const SweepArguments& typed, const OutputOptions& output) {
  if (!typed.batch.empty()) {
    check_batch(typed, output);
    return answer_batch(typed);
  }
  SweepArguments arguments = typed;
  const std::optional<CostQuestion> cost = read_cost(arguments.cost);
  check_outputs({{"--save", arguments.save},
                 {"--html", arguments.page.html},
                 {"--markdown", arguments.page.markdown}},
                files_read(arguments.layout));
  const std::vector<Variant> questions = variants(arguments.layout);
  if (questions.size() > 1) return answer_all(arguments, questions, cost, output);
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
  return code_of(answer);
}

}  // namespace zeroplan
