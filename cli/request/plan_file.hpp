#pragma once
// A question taken from a file: a plan that another command wrote, or a configuration.

#include <string>
#include <string_view>
#include <vector>

#include "cli/request/arguments.hpp"
#include "presets/configuration.hpp"

namespace zeroplan {

/// `typed` with all that its --config says, and its MODEL where that is a plan: a document of
/// `fit --json`, or FILE#N, the N-th plan of `sweep --json` or `--save`; `-` is read here too. What
/// is typed wins over a configuration, and that over a plan; what differs is appended to `notes`, a
/// sentence each, and what of a configuration is not understood. Throws InputError.
LayoutArguments with_plan(LayoutArguments typed, std::vector<std::string>& notes);

/// Lays options that `source` says under what was typed, which wins, openly: each that differs is
/// appended to `notes`. Settings of another runtime than the typed one are left out.
void lay_under(LayoutArguments& typed,
               const std::vector<TypedOption>& said,
               std::string_view source,
               std::vector<std::string>& notes);

/// What `import` reads: a configuration, a plan, FILE#N of a sweep, or - for standard input. Throws
/// InputError.
ImportedConfiguration read_configuration(const std::string& file);

/// Whether `text` is the path of a file, or FILE#N of one.
bool names_file(const std::string& text);

}  // namespace zeroplan
