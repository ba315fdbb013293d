#pragma once
// zeroplan validate on GPUs, in the program that can.

#include "cli/arguments.hpp"
#include "cli/exit_code.hpp"

namespace zeroplan {

/// As run_validate, for --backend loopback and nccl. Throws EnvironmentError without a GPU.
ExitCode validate_here(const ValidateArguments& arguments, const OutputOptions& output);

}  // namespace zeroplan
