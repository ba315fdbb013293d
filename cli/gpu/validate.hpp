#pragma once
// zeroplan validate on GPUs, in the program that can.

#include "cli/out/exit_code.hpp"
#include "cli/request/arguments.hpp"

namespace zeroplan {

/// As run_validate, for --backend loopback and nccl. Throws EnvironmentError without a GPU.
ExitCode validate_here(const ValidateArguments& arguments, const OutputOptions& output);

}  // namespace zeroplan
