// zeroplan validate: is that true? Front door: run_validate.
#include <fmt/format.h>

#include <array>
#include <filesystem>

#include "cli/answer.hpp"
#include "cli/commands.hpp"
#include "cli/read_request.hpp"
#include "cli/side.hpp"
#include "cli/standard_output.hpp"
#include "cli/validate_report.hpp"
#include "cost_model/legality.hpp"
#include "gpu_probe/devices.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"
#include "presets/text_file.hpp"

namespace zeroplan {
namespace {

using engine::ComparedRank;
using engine::Shrunk;

// MODEL may be a plan that fit --json wrote.
LayoutArguments question(const LayoutArguments& typed) {
  std::error_code error;
  const bool file = std::filesystem::is_regular_file(typed.model, error);
  const bool plan =
      file && read_text_file(typed.model).find("\"zeroplan.fit/1\"") != std::string::npos;
  LayoutArguments arguments = typed;
  if (plan) {
    arguments.model.clear();
    arguments = read_side(arguments, "the plan", typed.model);
  }
  if (!arguments.runtime) arguments.runtime = name_of(Runtime::zeroplan);
  return arguments;
}

// What of the plan the engine can execute.
Shrunk executable(const Problem& plan) {
  Shrunk full = engine::for_engine(plan);
  if (const auto violation = first_violation(full.problem)) {
    throw InputError(fmt::format("validate: {}", violation->reason));
  }
  return full;
}

void check_backend(const std::optional<std::string>& asked) {
  constexpr std::array<std::string_view, 3> known{"host", "loopback", "nccl"};
  if (!asked || *asked == known.front()) return;
  const std::vector<std::string> all(known.begin(), known.end());
  if (std::find(all.begin(), all.end(), *asked) == all.end()) {
    throw InputError(fmt::format("--backend {}: must be one of host, loopback, nccl; nearest is {}",
                                 in_quotes(*asked), nearest(*asked, all)));
  }
  throw EnvironmentError(
      fmt::format("--backend {}: this build runs the engine on the host alone", *asked));
}

// --as-rank stage=S
std::int64_t stage_to_count(const std::string& text, const Problem& problem) {
  constexpr std::string_view key = "stage=";
  if (text.rfind(key, 0) != 0) {
    throw InputError(fmt::format("--as-rank {}: must be stage=S", in_quotes(text)));
  }
  return read_whole("--as-rank", text.substr(key.size()), 0, problem.layout.pp - 1);
}

ExitCode exit_code(bool agrees) {
  return agrees ? ExitCode::yes : ExitCode::no;
}

ExitCode count(const Shrunk& full, std::int64_t stage, const OutputOptions& output) {
  const ComparedRank rank = engine::counted_rank(full.problem, stage);
  switch (output.form()) {
    case Output::json:
      write_answer(counted_json(full, rank));
      break;
    case Output::csv:
      write_answer(counted_csv(rank));
      break;
    case Output::text:
      write_answer(counted_text(full, rank, output.quiet));
      break;
  }
  return exit_code(rank.agrees());
}

}  // namespace

ExitCode run_validate(const ValidateArguments& arguments, const OutputOptions& output) {
  constexpr std::int64_t most_ranks = 64;  // threads of this process
  engine::Room room;
  if (arguments.ranks) room.ranks = read_whole("--ranks", *arguments.ranks, 1, most_ranks);
  check_backend(arguments.backend);
  Shrunk full = executable(answer_of(question(arguments.layout)).problem);
  if (arguments.as_rank) {
    return count(full, stage_to_count(*arguments.as_rank, full.problem), output);
  }
  const engine::Validation result = engine::validate_on_host(std::move(full), room, {});
  switch (output.form()) {
    case Output::json:
      write_answer(validate_json(result));
      break;
    case Output::csv:
      write_answer(validate_csv(result));
      break;
    case Output::text:
      write_answer(validate_text(result, output.quiet));
      break;
  }
  return exit_code(result.agrees());
}

}  // namespace zeroplan
