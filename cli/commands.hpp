#pragma once
// The commands, one function each. They write the answer to standard output and return how it went;
// InputError and other failures are main's to report.

#include <string>
#include <string_view>

#include "cli/arguments.hpp"
#include "cli/exit_code.hpp"

namespace zeroplan {

/// Will it fit?
ExitCode run_fit(const LayoutArguments& arguments, const OutputOptions& output);

/// Lists a kind of preset, or shows one whole.
ExitCode run_presets(std::string_view kind, std::string_view name, const OutputOptions& output);

/// Memory of one pipeline rank over a steady step.
ExitCode run_timeline(const TimelineArguments& arguments, const OutputOptions& output);

/// Lists the GPUs of this machine; EnvironmentError without any.
ExitCode run_probe(const OutputOptions& output);

}  // namespace zeroplan
