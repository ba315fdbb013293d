// zeroplan fit: will it fit? Front door: run_fit.
#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/out/answer.hpp"
#include "cli/out/report.hpp"
#include "cli/out/standard_output.hpp"
#include "cli/request/shell_word.hpp"
#include "planner/fit.hpp"

namespace zeroplan {
namespace {

// The question with the smallest number of GPUs that fits: it was searched with all else that was
// given.
std::string on_fewest_gpus(const LayoutArguments& a, const FitAnswer& answer) {
  if (!answer.fewest_gpus) return "";
  std::string text = "zeroplan fit " + shell_word(a.model);
  const auto add = [&](std::string_view flag, std::string_view value) {
    text += fmt::format(" {} {}", flag, shell_word(value));
  };
  if (a.runtime) add("--runtime", *a.runtime);
  for (const LayoutOption& option : layout_options()) {
    if (const auto& value = a.*option.text) add(option.flag, *value);
  }
  for (const std::string& set : a.set) add("--set", set);
  if (!a.cluster.empty()) add("--cluster", a.cluster);
  // A cluster says itself which GPU it has; it may be one without a name in the catalog.
  const std::string kind = a.cluster.empty() ? "x" + answer.problem.cluster.gpu.name : "";
  return text + fmt::format(" --gpus {}{}", *answer.fewest_gpus, kind);
}

}  // namespace

ExitCode run_fit(const LayoutArguments& arguments, const OutputOptions& output) {
  const FitAnswer answer = answer_of(arguments);
  write_in_form(
      output, [&] { return fit_json(answer); }, [&] { return fit_csv(answer); },
      [&] {
        return fit_text(answer, on_fewest_gpus(arguments, answer),
                        {wants_color(output), output.quiet});
      });
  return answer.estimate.verdict == Verdict::does_not_fit ? ExitCode::no : ExitCode::yes;
}

}  // namespace zeroplan
