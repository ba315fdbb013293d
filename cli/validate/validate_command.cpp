// zeroplan validate: is that true? Front door: run_validate.
#include <fmt/format.h>

#include "cli/commands.hpp"
#include "cli/probe/gpu_program.hpp"
#include "cli/request/recorded_file.hpp"
#include "cli/validate/traced.hpp"
#include "cli/validate/validate_output.hpp"
#include "cli/validate/validate_processes.hpp"
#include "cli/validate/validate_request.hpp"
#include "gpu_probe/environment_error.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

using engine::ComparedRank;
using engine::Shrunk;

[[noreturn]] void validate_on_gpus(Backend backend) {
  try {
    become_gpu_program(typed_words());
  } catch (const EnvironmentError& error) {
    throw EnvironmentError(
        fmt::format("--backend {}: this build runs the engine on the host alone: {}",
                    name_of(backend), error.what()));
  }
}

ExitCode count(const Shrunk& full,
               std::int64_t stage,
               const ChosenBackend& chosen,
               const OutputOptions& output) {
  const ComparedRank rank = engine::counted_rank(full.problem, stage);
  return write_rank(full, rank, {.backend = "counting", .reason = chosen.reason}, output);
}

}  // namespace

ExitCode run_validate(const ValidateArguments& arguments, const OutputOptions& output) {
  require_described("validate", arguments.layout);
  if (arguments.with) return validate_traced(arguments, output);
  if (arguments.python) throw InputError("--python: says where --with finds its runtime");
  ValidateRequest request = read_validation(arguments);
  const Launch launch = read_launch(process_variables());
  AtHand at_hand = request.backend ? AtHand{} : gpus_at_hand("/dev", gpu_program());
  at_hand.ranks = std::max(launch.world, request.spawn.value_or(1));
  const ChosenBackend chosen = chosen_backend(request.backend, at_hand);
  if (chosen.backend != Backend::host) validate_on_gpus(chosen.backend);
  if (request.stage) return count(request.full, *request.stage, chosen, output);
  const bool started = !launch.launcher.empty();  // as a rank, maybe the only one
  if (launch.world > 1 || (started && request.spawn)) {
    return join_validation(std::move(request), launch, chosen, output);
  }
  if (request.spawn) return spawn_validation(request);
  engine::Room room;
  if (request.ranks) room.ranks = *request.ranks;
  const engine::Validation result =
      engine::validate_on_host(std::move(request.full), room, request.options);
  return write_validation(result, {.backend = "host", .reason = chosen.reason, .time = result.time},
                          output);
}

}  // namespace zeroplan
