#pragma once
// The answer of validate, in the form that was asked for, on standard output. The exit code is `no`
// where anything differs, or a GPU's memory is not accounted for.

#include "cli/commands.hpp"
#include "cli/validate/validate_report.hpp"

namespace zeroplan {

ExitCode write_validation(const engine::Validation& validation,
                          const MeasuredOn& where,
                          const OutputOptions& output);

/// One rank of the full plan alone, its peers absent.
ExitCode write_rank(const engine::Shrunk& full,
                    const engine::ComparedRank& rank,
                    const MeasuredOn& where,
                    const OutputOptions& output);

}  // namespace zeroplan
