// What does a recorded step fix? Front doors: lay_recorded, require_described.
#include "cli/request/recorded_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/request/quantity.hpp"
#include "cli/request/read_gpus.hpp"
#include "cli/request/words.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"
#include "presets/recorded_program.hpp"
#include "presets/text_file.hpp"

namespace zeroplan {
namespace {

// Whether an option changes what is said of a layout, not the layout.
bool is_free(std::string_view flag) {
  constexpr std::string_view free[] = {"--margin", "--tie", "--attention-flops"};
  return std::ranges::find(free, flag) != std::end(free);
}

[[noreturn]] void refuse(std::string_view option,
                         std::string_view typed,
                         std::string_view source,
                         std::string_view has) {
  throw InputError(
      fmt::format("{} {}: {} is a recorded step, whose layout is fixed{}: record "
                  "another one",
                  option, in_quotes(std::string(typed)), source, has));
}

void lay(LayoutArguments& typed,
         const LayoutOption& option,
         const RecordedStep& step,
         std::string_view source) {
  const auto said = std::ranges::find(step.layout, option.flag, &TypedOption::flag);
  std::optional<std::string>& text = typed.*option.text;
  if (is_free(option.flag)) return;
  if (said == step.layout.end()) {
    if (text) refuse(option.flag, *text, source, "");
    return;
  }
  const bool same = !text || usual_word(option.flag, *text) == said->value;
  if (!same) refuse(option.flag, *text, source, fmt::format(" at {}", said->value));
  text = said->value;
}

// Takes the GPUs that the step ran on, where no number was typed.
void lay_gpus(LayoutArguments& typed, const RecordedStep& step) {
  const GpuText gpus = read_gpu_text(typed.gpus);
  const bool names_none = gpus.gpu.empty() && typed.cluster.empty();
  if (names_none || !gpus.count.empty() || typed.nodes) return;
  typed.gpus =
      gpus.gpu.empty() ? std::to_string(step.gpus) : fmt::format("{}x{}", step.gpus, gpus.gpu);
}

}  // namespace

void lay_recorded(LayoutArguments& typed,
                  const std::string& text,
                  std::string_view where,
                  std::string_view source) {
  const auto step = std::make_shared<RecordedStep>(read_recorded_step(text, where));
  if (typed.runtime) refuse("--runtime", *typed.runtime, source, "");
  if (!typed.set.empty()) refuse("--set", typed.set.front(), source, "");
  if (!typed.as.empty()) refuse("--as", typed.as, source, "");
  for (const LayoutOption& option : layout_options()) lay(typed, option, *step, source);
  lay_gpus(typed, *step);
  typed.recorded = step;
}

namespace {

[[noreturn]] void refuse_recorded(std::string_view command) {
  throw InputError(fmt::format(
      "{}: a recorded step has the one layout it was recorded at; fit, timeline, explain and "
      "compare take it",
      command));
}

}  // namespace

void require_described(std::string_view command, const RuntimeSpec& runtime) {
  if (runtime.recorded) refuse_recorded(command);
}

void require_described(std::string_view command, const LayoutArguments& typed) {
  std::error_code error;
  const bool file = std::filesystem::is_regular_file(typed.model, error);
  if (file && is_recorded_step(read_text_file(typed.model))) refuse_recorded(command);
}

}  // namespace zeroplan
