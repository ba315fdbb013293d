#pragma once
// The commands, one function each. They write the answer to standard output and return how it went;
// InputError and other failures are main's to report.

#include <string>
#include <string_view>

#include "cli/out/exit_code.hpp"
#include "cli/request/arguments.hpp"

namespace zeroplan {

/// Will it fit?
ExitCode run_fit(const FitArguments& arguments, const OutputOptions& output);

/// Which layout should I use?
ExitCode run_sweep(const SweepArguments& arguments, const OutputOptions& output);

/// Lists a kind of preset, or shows one whole.
ExitCode run_presets(std::string_view kind, std::string_view name, const OutputOptions& output);

/// Memory of one pipeline rank over a steady step.
ExitCode run_timeline(const TimelineArguments& arguments, const OutputOptions& output);

/// A step told block by block: who holds, gathers, keeps, drops and sends what.
ExitCode run_story(const StoryArguments& arguments, const OutputOptions& output);

/// A profiled step beside the predicted one; `no` where it takes a time outside the band.
ExitCode run_overlay(const OverlayArguments& arguments, const OutputOptions& output);

/// Each row of an answer with its formula, its numbers and its source; `no` when it does not fit.
ExitCode run_explain(const ExplainArguments& arguments, const OutputOptions& output);

/// Two layouts side by side; `no` when neither fits.
ExitCode run_compare(const CompareArguments& arguments, const OutputOptions& output);

/// The plan as a configuration of its runtime; what that cannot say goes to standard error.
ExitCode run_export(const ExportArguments& arguments, const OutputOptions& output);

/// The options that a configuration or a plan means; what is not understood goes to standard error.
ExitCode run_import(const std::string& file, const OutputOptions& output);

/// Is that true? A reduced run beside its prediction; `no` where they differ.
ExitCode run_validate(const ValidateArguments& arguments, const OutputOptions& output);

/// Measures this machine, by zeroplan-gpu, which this process becomes; EnvironmentError where that
/// was not built.
ExitCode run_probe(const ProbeArguments& arguments, const OutputOptions& output);

/// Answers over HTTP, on loopback unless told otherwise, until it is interrupted.
ExitCode run_serve(const ServeArguments& arguments);

/// The words of `app` for a shell to complete from, or as the manual; `form` is bash, zsh, fish or
/// man.
ExitCode run_completions(const CLI::App& app, const std::string& form);

}  // namespace zeroplan
