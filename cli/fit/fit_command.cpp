// zeroplan fit: will it fit? Front door: run_fit.
#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/fit/fit_table.hpp"
#include "cli/fit/variants.hpp"
#include "cli/out/answer.hpp"
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
  return answer.estimate.verdict == Verdict::does_not_fit ? ExitCode::no : ExitCode::yes;
}

// Where no question can be answered, the first says why.
ExitCode answer_all(const std::vector<Variant>& questions,
                    std::optional<Bytes> host,
                    const std::optional<CostQuestion>& cost,
                    const OutputOptions& output) {
  std::vector<TableRow> rows;
  bool some_answered = false;
  bool some_fit = false;
  for (const Variant& variant : questions) {
    TableRow row{.values = variant.values, .answer = std::nullopt, .refusal = ""};
    try {
      row.answer = answer_of(variant.question);
      judge_host(*row.answer, host);
      some_answered = true;
      some_fit = some_fit || row.answer->estimate.verdict != Verdict::does_not_fit;
    } catch (const InputError& error) {
      row.refusal = error.what();
    }
    rows.push_back(std::move(row));
  }
  if (!some_answered) throw InputError(rows.front().refusal);
  write_in_form(
      output, [&] { return table_json(rows, cost); }, [&] { return table_csv(rows); },
      [&] { return table_text(rows, cost, terminal_width()); });
  return some_fit ? ExitCode::yes : ExitCode::no;
}

}  // namespace

ExitCode run_fit(const FitArguments& arguments, const OutputOptions& output) {
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
  return questions.size() == 1 ? answer_one(arguments, cost, output)
                               : answer_all(questions, host_memory(arguments), cost, output);
}

}  // namespace zeroplan
