// zeroplan validate: is that true? Front door: run_validate.
#include <fmt/format.h>

#include <fstream>
#include <iterator>

#include "cli/commands.hpp"
#include "cli/gpu_program.hpp"
#include "cli/validate_output.hpp"
#include "cli/validate_request.hpp"
#include "gpu_probe/environment_error.hpp"

namespace zeroplan {
namespace {

using engine::ComparedRank;
using engine::Shrunk;

// What follows the name of this program, as it was typed.
std::vector<std::string> typed_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  if (!words.empty()) words.erase(words.begin());
  return words;
}

[[noreturn]] void validate_on_gpus(Backend backend) {
  try {
    become_gpu_program(typed_words());
  } catch (const EnvironmentError& error) {
    throw EnvironmentError(
        fmt::format("--backend {}: this build runs the engine on the host alone: {}",
                    name_of(backend), error.what()));
  }
}

ExitCode count(const Shrunk& full, std::int64_t stage, const OutputOptions& output) {
  const ComparedRank rank = engine::counted_rank(full.problem, stage);
  return write_rank(full, rank, {.backend = "counting"}, output);
}

}  // namespace

ExitCode run_validate(const ValidateArguments& arguments, const OutputOptions& output) {
  ValidateRequest request = read_validation(arguments);
  if (request.backend != Backend::host) validate_on_gpus(request.backend);
  if (request.stage) return count(request.full, *request.stage, output);
  engine::Room room;
  if (request.ranks) room.ranks = *request.ranks;
  const engine::Validation result = engine::validate_on_host(std::move(request.full), room, {});
  return write_validation(result, {}, output);
}

}  // namespace zeroplan
