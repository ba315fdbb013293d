// How do processes of the host validate together? Front doors: spawn_validation, join_validation.
#include "cli/validate/validate_processes.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "cli/validate/validate_output.hpp"
#include "gpu_probe/environment_error.hpp"
#include "presets/input_error.hpp"
#include "presets/text_file.hpp"
#include "validator/launch/spawn.hpp"
#include "validator/process_run.hpp"

namespace zeroplan {
namespace {

// The plan, made as small as so many ranks have room for.
engine::Shrunk shrunk_to(const Problem& plan, std::int64_t ranks) {
  engine::Room room;
  room.ranks = ranks;
  engine::Shrunk small = engine::shrunk(plan, room);
  const std::int64_t world = world_size(small.problem.layout);
  if (world != ranks) {
    throw InputError(
        fmt::format("validate: the plan shrinks to {} ranks, and {} were asked for", world, ranks));
  }
  return small;
}

}  // namespace

std::vector<std::string> typed_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  if (!words.empty()) words.erase(words.begin());
  return words;
}

ExitCode spawn_validation(const ValidateRequest& request) {
  constexpr std::chrono::hours limit{24};  // each rank has time-outs of its own
  shrunk_to(request.full.problem, *request.spawn);
  std::vector<std::string> command = typed_words();
  command.insert(command.begin(), std::filesystem::read_symlink("/proc/self/exe").string());
  return static_cast<ExitCode>(spawn_ranks({.command = std::move(command),
                                            .ranks = *request.spawn,
                                            .limit = limit,
                                            .input = standard_input_read()}));
}

ExitCode join_validation(ValidateRequest request,
                         const Launch& launch,
                         const ChosenBackend& chosen,
                         const OutputOptions& output) {
  if (request.ranks && *request.ranks != launch.world) {
    throw InputError(
        fmt::format("--ranks {}: {} started {}", *request.ranks, launch.launcher, launch.world));
  }
  engine::Shrunk small = shrunk_to(request.full.problem, launch.world);
  const engine::RunOptions& options = request.options;
  try {
    Rendezvous star(launch, options.patience);
    engine::Mesh mesh(launch, star, options.patience);
    const engine::Validation result =
        engine::validated(std::move(request.full), std::move(small),
                          [&](const Problem& problem, engine::Asked asked) {
                            return engine::run_as_process(
                                problem, engine::timed_where(options, asked), launch, star, mesh);
                          });
    star.barrier();  // nobody goes while another still needs it
    if (launch.rank > 0) return ExitCode::yes;
    const std::string reason = fmt::format("{}; {} processes", chosen.reason, launch.world);
    return write_validation(
        result, {.backend = name_of(chosen.backend), .reason = reason, .time = result.time},
        output);
  } catch (const std::runtime_error& error) {
    throw EnvironmentError(fmt::format("rank {}: {}", launch.rank, error.what()));
  }
}

}  // namespace zeroplan
