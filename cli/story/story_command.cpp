// zeroplan story: how does a step move data? Front door: run_story.
#include "cli/commands.hpp"
#include "cli/out/answer.hpp"
#include "cli/out/standard_output.hpp"
#include "cli/request/recorded_file.hpp"
#include "cli/story/story_report.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {

ExitCode run_story(const StoryArguments& arguments, const OutputOptions& output) {
  const FitAnswer answer = answer_of(arguments.layout);
  require_described("story", answer.problem.runtime);
  if (answer.problem.model.layers == 0) {
    throw InputError("story: a size alone has no layers, so that nothing moves in its step");
  }
  const std::size_t stage = stage_of(arguments.stage, answer.estimate);
  const Evaluator evaluator(answer.problem);
  const Story told =
      story(answer.problem, evaluator, answer.step, static_cast<std::int64_t>(stage));
  write_in_form(
      output, [&] { return story_json(answer, told); }, [&] { return story_csv(told); },
      [&] { return story_text(answer, told, text_style(output)); });
  return ExitCode::yes;
}

}  // namespace zeroplan
