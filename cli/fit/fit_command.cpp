// zeroplan fit: will it fit? Front door: run_fit.
#include <fmt/format.h>

#include "cli/batch/batch.hpp"
#include "cli/batch/line_question.hpp"
#include "cli/commands.hpp"
#include "cli/out/answer.hpp"
#include "cli/out/answer_table.hpp"
#include "cli/out/report.hpp"
#include "cli/out/standard_output.hpp"
#include "cli/out/terminal.hpp"
#include "cli/out/written_file.hpp"
#include "cli/page/page_document.hpp"
#include "cli/page/typed_line.hpp"
#include "cli/request/plan_file.hpp"
#include "cli/request/quantity.hpp"
#include "cli/request/recorded_file.hpp"
#include "cli/request/shell_word.hpp"
#include "cli/request/solve.hpp"
#include "cli/request/variants.hpp"
#include "planner/fit.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

// The question with the smallest number of GPUs that fits: it was searched with all else that was
// given.
std::string on_fewest_gpus(const LayoutArguments& a, const FitAnswer& answer) {
  if (!answer.fewest_gpus) return "";
  std::string text = "zeroplan fit";
  if (!a.model.empty()) text += " " + shell_word(a.model);
  const auto add = [&](std::string_view flag, std::string_view value) {
    text += fmt::format(" {} {}", flag, shell_word(value));
  };
  if (!a.as.empty()) add("--as", a.as);
  if (!a.config.empty()) add("--config", a.config);
  if (a.runtime) add("--runtime", *a.runtime);
  for (const LayoutOption& option : layout_options()) {
    const auto& value = a.*option.text;
    if (!value) continue;
    const Problem& p = answer.problem;
    const bool found = asks_largest(*value);
    add(option.flag, !found                   ? *value
                     : option.flag == "--seq" ? std::to_string(p.training.sequence_length)
                                              : std::to_string(p.layout.micro_batch));
  }
  for (const std::string& set : a.set) add("--set", set);
  if (!a.cluster.empty()) add("--cluster", a.cluster);
  // A cluster says itself which GPU it has; it may be one without a name in the catalog.
  const std::string kind = a.cluster.empty() ? "x" + answer.problem.cluster.gpu.name : "";
  return text + fmt::format(" --gpus {}{}", *answer.fewest_gpus, kind);
}

std::optional<Bytes> host_memory(const FitArguments& arguments) {
  if (!arguments.host_memory) return std::nullopt;
  return read_size("--host-memory", *arguments.host_memory);
}

// What is offloaded must find its place, too.
void judge_host(FitAnswer& answer, std::optional<Bytes> memory) {
  if (memory && answer.estimate.host_a_node > *memory) {
    answer.estimate.verdict = Verdict::does_not_fit;
  }
}

ExitCode code_of(const FitAnswer& answer) {
  return answer.estimate.verdict == Verdict::does_not_fit ? ExitCode::no : ExitCode::yes;
}

ExitCode answer_one(const FitArguments& arguments,
                    const std::optional<CostQuestion>& cost,
                    const OutputOptions& output) {
  LayoutArguments layout = arguments.layout;
  std::vector<std::string> notes;
  const bool read_once = arguments.page.wanted() && layout.model == "-";
  if (read_once) layout = with_plan(layout, notes);  // a page asks more than once
  FitAnswer answer = answer_of(layout);
  const std::optional<Bytes> host = host_memory(arguments);
  judge_host(answer, host);
  answer.assumptions.insert(answer.assumptions.end(), notes.begin(), notes.end());
  if (arguments.page.wanted()) {
    require_described("--html and --markdown", answer.problem.runtime);
    const std::string typed = typed_line("fit", arguments.layout) + typed_cost(arguments.cost);
    write_pages(arguments.page, fit_page(answer, {"fit", typed, layout, cost}));
  }
  write_in_form(
      output, [&] { return fit_json(answer, cost, host); }, [&] { return fit_csv(answer); },
      [&] {
        return fit_text(answer, {on_fewest_gpus(layout, answer), cost, host}, text_style(output));
      });
  return code_of(answer);
}

FitAnswer judged_answer(const LayoutArguments& asked, std::optional<Bytes> host) {
  FitAnswer answer = answer_of(asked);
  judge_host(answer, host);
  return answer;
}

BatchAnswer answer_line(const FitArguments& typed, const std::string& line) {
  const FitArguments asked = question_of_line(typed, line);
  const std::optional<CostQuestion> cost = read_cost(asked.cost);
  const std::optional<Bytes> host = host_memory(asked);
  const FitAnswer answer = judged_answer(asked.layout, host);
  return {fit_json(answer, cost, host), code_of(answer)};
}

}  // namespace

ExitCode run_fit(const FitArguments& arguments, const OutputOptions& output) {
  if (!arguments.batch.empty()) {
    check_batch(arguments, output);
    // One at a time: where a layout is left open, its search has all cores.
    return answer_lines(arguments.batch, 1,
                        [&](const std::string& line) { return answer_line(arguments, line); });
  }
  const std::optional<CostQuestion> cost = read_cost(arguments.cost);
  check_outputs({{"--html", arguments.page.html}, {"--markdown", arguments.page.markdown}},
                files_read(arguments.layout));
  const std::vector<Variant> questions = variants(arguments.layout);
  if (questions.size() > 1 && arguments.page.wanted()) {
    throw InputError(fmt::format(
        "fit: a page is of one question, these are {}; leave out --html and --markdown, "
        "or the lists",
        questions.size()));
  }
  if (questions.size() == 1) return answer_one(arguments, cost, output);
  const std::optional<Bytes> host = host_memory(arguments);
  const auto answer = [&](const LayoutArguments& asked) { return judged_answer(asked, host); };
  return write_table(questions, answer, cost, output);
}

}  // namespace zeroplan
