#pragma once
// What a request asks: options by their names on the command line, as far as strangers may use
// them.

#include <string>
#include <variant>
#include <vector>

#include "cli/request/arguments.hpp"
#include "cli/request/parameters.hpp"

namespace zeroplan {

/// The commands that are answered.
using ServedQuestion =
    std::variant<FitArguments, SweepArguments, CompareArguments, ExplainArguments>;

/// Throws InputError where the command has no such option, and where a file would be read or
/// written: those are the machine's, not the visitor's.
ServedQuestion read_question(const std::string& command, const Parameters& parameters);

/// The names of the commands.
const std::vector<std::string>& served_commands();

}  // namespace zeroplan
