#pragma once
// Options by their names, as a program or a form sends them instead of typing.

#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
}

namespace zeroplan {

/// In their order. `model` is MODEL, `more` is options as they are typed, all else the name of an
/// option without its dashes; empty values were left open, and so is a flag that is `off`.
using Parameters = std::vector<std::pair<std::string, std::string>>;

/// The words that would be typed. Throws InputError where the command has no such option.
std::vector<std::string> words_of(const CLI::App& command, const Parameters& parameters);

/// Reads `words` into what the options of `command` are bound to. Throws InputError.
void parse_words(CLI::App& command, std::vector<std::string> words);

}  // namespace zeroplan
