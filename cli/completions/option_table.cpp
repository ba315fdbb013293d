// Which words does the parser know? Front door: option_table.
#include "cli/completions/option_table.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <sstream>

#include "presets/preset_file.hpp"

namespace zeroplan {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// What the parser checks, {a,b}, or what the first word of the meaning lists, a|b.
std::vector<std::string> listed_values(const CLI::Option& option) {
  const std::string checked = option.get_type_name();
  const std::size_t open = checked.find('{');
  if (open != std::string::npos) {
    return split(checked.substr(open + 1, checked.find('}') - open - 1), ',');
  }
  return listed_words(option.get_description());
}

// What names a preset.
std::string catalog_of(const std::string& flag) {
  static const std::map<std::string, std::string> kinds{
      {"MODEL", "models"}, {"--gpus", "gpus"}, {"--cluster", "clusters"}};
  const auto found = kinds.find(flag);
  return found == kinds.end() ? "" : found->second;
}

OptionWords option_words(const CLI::Option& option) {
  OptionWords words{.meaning = option.get_description(),
                    .heading = option.get_group(),
                    .takes_value = option.get_items_expected_min() > 0,
                    .required = option.get_required(),
                    .values = listed_values(option)};
  for (const std::string& name : option.get_snames()) words.flags.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) words.flags.push_back("--" + name);
  if (words.flags.empty()) words.flags.push_back(option.get_name(true));
  words.catalog = catalog_of(words.flags.back());
  if (words.flags.back() == "KIND") words.values = preset_kinds();
  return words;
}

CommandWords command_words(const CLI::App& command) {
  CommandWords words{.name = command.get_name(), .meaning = command.get_description()};
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    (option->nonpositional() ? words.options : words.places).push_back(option_words(*option));
  }
  return words;
}

}  // namespace

std::vector<std::string> listed_words(const std::string& meaning) {
  const std::string first = meaning.substr(0, meaning.find_first_of(" ,"));
  return first.find('|') == std::string::npos ? std::vector<std::string>{} : split(first, '|');
}

OptionTable option_table(const CLI::App& app) {
  const CommandWords whole = command_words(app);
  OptionTable table{
      .version = first_line(app.version()), .meaning = whole.meaning, .options = whole.options};
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    table.commands.push_back(command_words(*command));
  }
  return table;
}

std::vector<SharedOption> shared_options(const OptionTable& table) {
  std::vector<SharedOption> all;
  for (const CommandWords& command : table.commands) {
    for (const OptionWords& option : command.options) {
      auto known = std::find_if(all.begin(), all.end(),
                                [&](const SharedOption& one) { return one.option == option; });
      if (known == all.end()) known = all.insert(all.end(), {option, {}});
      known->commands.push_back(command.name);
    }
  }
  return all;
}

std::vector<std::string> catalog_names(const std::string& kind) {
  return kind.empty() ? std::vector<std::string>{} : preset_names(kind);
}

}  // namespace zeroplan
