#pragma once
// What was wrong with the command line, in one line.

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace zeroplan {

/// The parser's complaint with the nearest command or option where a name was not known.
std::string usage_message(const CLI::App& app, const CLI::ParseError& error);

}  // namespace zeroplan
