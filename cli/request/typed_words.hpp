#pragma once
// The command line before the parser sees it.

#include <string>
#include <vector>

namespace zeroplan {

/// The arguments, `help [COMMAND]` as `[COMMAND] --help`, and each further KEY=VALUE behind a --set
/// with a --set of its own.
std::vector<std::string> typed_words(const std::vector<std::string>& arguments);

}  // namespace zeroplan
