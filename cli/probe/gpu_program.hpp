#pragma once
// The program beside this one that talks to GPUs, so that this one needs no CUDA library.

#include <filesystem>
#include <string>
#include <vector>

namespace zeroplan {

/// Where it would be: in the folder of this program.
std::filesystem::path gpu_program();

/// Becomes `zeroplan-gpu ARGUMENTS`, from the folder of this program. Throws EnvironmentError when
/// it was not built.
[[noreturn]] void become_gpu_program(std::vector<std::string> arguments);

}  // namespace zeroplan
