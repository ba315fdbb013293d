// What would be typed? Front door: words_of.
#include "cli/request/parameters.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/request/typed_words.hpp"
#include "cli/request/usage_error.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t most_parameters = 100;
constexpr std::size_t longest_value = 2000;

}  // namespace

std::vector<std::string> words_of(const CLI::App& command, const Parameters& parameters) {
  if (parameters.size() > most_parameters) throw InputError("too many parameters");
  std::vector<std::string> words;
  for (const auto& [name, value] : parameters) {
    if (value.empty()) continue;
    if (value.size() > longest_value) throw InputError(fmt::format("{}: too long", name));
    if (name == "model") {
      if (value.starts_with('-')) throw InputError(fmt::format("no model {}", in_quotes(value)));
      words.insert(words.begin(), value);
    } else if (name == "more") {
      for (std::string& word : CLI::detail::split_up(value)) words.push_back(std::move(word));
    } else {
      const CLI::Option* option = command.get_option_no_throw("--" + name);
      if (option == nullptr) {
        throw InputError(fmt::format("{} has no option {}", command.get_name(), in_quotes(name)));
      }
      const bool flag = option->get_items_expected_max() == 0;
      if (flag && value == "off") continue;
      words.push_back(flag ? "--" + name : fmt::format("--{}={}", name, value));
    }
  }
  return words;
}

void parse_words(CLI::App& command, std::vector<std::string> words) {
  command.set_help_flag();
  words = typed_words(words);
  std::reverse(words.begin(), words.end());  // as the parser takes them
  try {
    command.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    throw InputError(usage_message(command, error));
  }
}

}  // namespace zeroplan
