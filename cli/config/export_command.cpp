// zeroplan export: what does the runtime launch with? Front door: run_export.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/out/answer.hpp"
#include "cli/out/standard_output.hpp"
#include "cli/request/read_request.hpp"
#include "cli/request/recorded_file.hpp"
#include "presets/configuration.hpp"
#include "presets/input_error.hpp"
#include "presets/runtime.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

bool has(const RuntimeSpec& runtime, ConfigurationFormat format) {
  const std::vector<ConfigurationFormat> formats = formats_of(runtime);
  return std::ranges::find(formats, format) != formats.end();
}

// The options that choose a runtime with such a configuration.
std::vector<std::string> runtimes_with(ConfigurationFormat format) {
  std::vector<std::string> list;
  for (std::size_t i = 0; i < names<Runtime>().size(); ++i) {
    const auto runtime = static_cast<Runtime>(i);
    const std::string option = fmt::format("--runtime {}", name_of(runtime));
    if (has(load_runtime(runtime, {}), format)) list.push_back(option);
    if (runtime == Runtime::fsdp2 &&
        has(load_runtime(runtime, {{"layers", "huggingface"}}), format)) {
      list.push_back(option + " --set layers=huggingface");
    }
  }
  return list;
}

// A configuration of another runtime would be another plan.
ConfigurationFormat format_for(const RuntimeSpec& runtime,
                               std::optional<ConfigurationFormat> asked) {
  const std::vector<ConfigurationFormat> known = formats_of(runtime);
  if (!asked && !known.empty()) return known.front();
  if (asked && has(runtime, *asked)) return *asked;
  if (!asked) {
    throw InputError(
        fmt::format("export: {} reads no configuration; --runtime megatron, fsdp2, "
                    "ddp, deepspeed and nanotron do",
                    name_of(runtime.kind)));
  }
  std::vector<std::string_view> of_runtime;
  for (const ConfigurationFormat format : known) of_runtime.push_back(name_of(format));
  throw InputError(
      fmt::format("--format {}: a plan for {} is not that; its formats are {}; {} would do",
                  name_of(*asked), name_of(runtime.kind),
                  of_runtime.empty() ? "none" : fmt::format("{}", fmt::join(of_runtime, ", ")),
                  fmt::join(runtimes_with(*asked), " or ")));
}

Json document(const ExportedConfiguration& configuration,
              ConfigurationFormat format,
              const std::string& launch) {
  Json unsaid = Json::array();
  for (const TypedOption& option : configuration.unsaid) {
    unsaid.push_back({{"flag", option.flag}, {"value", option.value}});
  }
  return {{"schema", "zeroplan.export/1"},
          {"format", name_of(format)},
          {"text", configuration.text},
          {"unsaid", unsaid},
          {"other_model", configuration.other_model},
          {"launch", launch}};
}

}  // namespace

ExitCode run_export(const ExportArguments& arguments, const OutputOptions& output) {
  const auto asked = read_choice<ConfigurationFormat>("--format", arguments.format);
  if (output.form() == Output::csv)
    throw InputError("export: a configuration has no rows; drop --csv");
  const FitAnswer answer = answer_of(arguments.layout);
  require_described("export", answer.problem.runtime);
  const ConfigurationFormat format = format_for(answer.problem.runtime, asked);
  const ExportedConfiguration configuration = export_configuration(answer.problem, format);
  const std::string launch = launch_line(answer.problem, format);
  const bool fits = answer.estimate.verdict != Verdict::does_not_fit;
  if (output.form() == Output::json) {
    write_answer(document(configuration, format, launch).dump(2) + "\n");
    return fits ? ExitCode::yes : ExitCode::no;
  }
  write_answer(configuration.text);
  if (output.quiet) return fits ? ExitCode::yes : ExitCode::no;
  for (const TypedOption& option : configuration.unsaid) {
    fmt::print(stderr, "zeroplan: note: no key of {} says {} {}: set it where you launch\n",
               name_of(format), option.flag, option.value);
  }
  if (!configuration.other_model.empty()) {
    fmt::print(stderr, "zeroplan: note: {} builds another model than {}, with {}\n",
               name_of(format), answer.problem.model.name,
               fmt::join(configuration.other_model, ", "));
  }
  fmt::print(stderr, "zeroplan: note: to launch: {}\n", launch);
  if (!fits) fmt::print(stderr, "zeroplan: note: this plan does not fit; see zeroplan fit\n");
  return fits ? ExitCode::yes : ExitCode::no;
}

}  // namespace zeroplan
