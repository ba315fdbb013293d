#pragma once
// The commands, one function each. They write the answer to standard output and return how it went;
// InputError and other failures are main's to report.

#include <string>
#include <string_view>

#include "cli/arguments.hpp"
#include "cli/exit_code.hpp"

namespace zeroplan {

/// `command_line`: what was typed, quoted where a shell needs it, for the suggestion at the end.
ExitCode run_fit(const LayoutArguments& arguments, const OutputOptions& output);

/// Lists a kind of preset, or shows one whole.
ExitCode run_presets(std::string_view kind, std::string_view name, const OutputOptions& output);

}  // namespace zeroplan
