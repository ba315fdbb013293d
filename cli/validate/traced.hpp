#pragma once
// zeroplan validate --with RUNTIME: a rank of the plan in the runtime's own code, on fake tensors
// in the user's Python, beside what was predicted of it.

#include "cli/commands.hpp"

namespace zeroplan {

/// Throws InputError where the runtime cannot be asked for the plan, EnvironmentError where Python
/// or a package is missing, fails, or takes longer than --timeout. `no` where the allocated bytes
/// differ by more than 1 %.
ExitCode validate_traced(const ValidateArguments& arguments, const OutputOptions& output);

}  // namespace zeroplan
