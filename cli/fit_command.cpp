// zeroplan fit: will it fit? Front door: run_fit.
#include <fmt/format.h>

#include "cli/answer.hpp"
#include "cli/commands.hpp"
#include "cli/report.hpp"
#include "cli/standard_output.hpp"
#include "planner/fit.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

// The command to repeat with another --gpus.
std::string repeatable(const LayoutArguments& a) {
  std::string text = fmt::format("zeroplan fit {}", a.model);
  const auto add = [&](std::string_view flag, const std::optional<std::string>& value) {
    if (value) text += fmt::format(" {} {}", flag, *value);
  };
  add("--runtime", a.runtime);
  add("--seq", a.seq);
  add("--global-batch", a.global_batch);
  add("--micro-batch", a.micro_batch);
  add("--precision", a.precision);
  add("--optimizer", a.optimizer);
  add("--attention", a.attention);
  add("--offload", a.offload);
  for (const std::string& set : a.set) text += fmt::format(" --set {}", set);
  return text;
}

}  // namespace

ExitCode run_fit(const LayoutArguments& arguments, const OutputOptions& output) {
  const FitAnswer answer = answer_of(arguments);
  switch (output.form()) {
    case Output::json:
      fmt::print("{}", fit_json(answer));
      break;
    case Output::csv:
      fmt::print("{}", fit_csv(answer));
      break;
    case Output::text:
      fmt::print("{}",
                 fit_text(answer, repeatable(arguments), {wants_color(output), output.quiet}));
      break;
  }
  return answer.estimate.verdict == Verdict::does_not_fit ? ExitCode::no : ExitCode::yes;
}

}  // namespace zeroplan
