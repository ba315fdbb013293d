// Who talks to the GPUs? Front door: become_gpu_program.
#include "cli/probe/gpu_program.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "gpu_probe/environment_error.hpp"

namespace zeroplan {

std::filesystem::path gpu_program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "zeroplan-gpu";
}

void become_gpu_program(std::vector<std::string> arguments) {
  const std::string program = gpu_program();
  arguments.insert(arguments.begin(), program);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv(program.c_str(), pointers.data());
  if (errno == ENOENT) {
    throw EnvironmentError(
        "this zeroplan was built without CUDA and NCCL; install both and build again with "
        "-DZEROPLAN_CUDA=ON");
  }
  throw EnvironmentError(fmt::format("{}: {}", program, std::strerror(errno)));
}

}  // namespace zeroplan
