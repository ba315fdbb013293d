// How does fish complete? Front door: fish_script.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/completions/scripts.hpp"
#include "presets/preset_file.hpp"

namespace zeroplan {
namespace {

std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// Where a candidate belongs: in these commands, or before any.
std::string condition(const std::vector<std::string>& commands) {
  if (commands.empty()) return "__fish_use_subcommand";
  return fmt::format("__fish_seen_subcommand_from {}", fmt::join(commands, " "));
}

std::string values(const OptionWords& option) {
  if (option.flags.back() == "--gpus") return "(__zeroplan_gpus)";
  const std::vector<std::string> words =
      option.values.empty() ? catalog_names(option.catalog) : option.values;
  return fmt::format("{}", fmt::join(words, " "));
}

std::string line(const OptionWords& option, const std::vector<std::string>& commands) {
  std::string out = fmt::format("complete -c zeroplan -n {}", fish_quoted(condition(commands)));
  for (const std::string& flag : option.flags) {
    const bool is_long = flag.starts_with("--");
    out += fmt::format(" {} {}", is_long ? "-l" : "-s", flag.substr(is_long ? 2 : 1));
  }
  if (option.takes_value) {
    const std::string words = values(option);
    const bool files = words.empty() || option.catalog == "clusters";
    out += files ? " -r -F" : " -x";
    if (!words.empty()) out += " -a " + fish_quoted(words);
  }
  return out + " -d " + fish_quoted(option.meaning) + "\n";
}

// What stands at the places of a command, besides files.
std::string places(const CommandWords& command) {
  std::string out;
  for (const OptionWords& place : command.places) {
    const std::string words = values(place);
    if (words.empty()) continue;
    out += fmt::format("complete -c zeroplan -n {} -a {} -d {}\n",
                       fish_quoted(condition({command.name})), fish_quoted(words),
                       place.flags.front());
  }
  return out;
}

// A catalog's names, which follow the kind's.
std::string kind_lines() {
  std::string out;
  for (const std::string& kind : preset_kinds()) {
    out += fmt::format(
        "complete -c zeroplan -n '__fish_seen_subcommand_from presets; and "
        "__fish_seen_subcommand_from {}' -x -a {} -d NAME\n",
        kind, fish_quoted(fmt::format("{}", fmt::join(catalog_names(kind), " "))));
  }
  return out;
}

}  // namespace

std::string fish_script(const OptionTable& table) {
  std::vector<std::string> commands;
  std::string lines;
  for (const OptionWords& option : table.options) lines += line(option, {});
  for (const CommandWords& command : table.commands) {
    commands.push_back(command.name);
    lines += fmt::format("complete -c zeroplan -n __fish_use_subcommand -f -a {} -d {}\n",
                         command.name, fish_quoted(command.meaning));
    lines += places(command);
  }
  for (const SharedOption& shared : shared_options(table)) {
    lines += line(shared.option, shared.commands);
  }
  return fmt::format(
      R"(# fish completion of {version}, from its option table: zeroplan completions fish | source
function __zeroplan_gpus
    set -l count (string match -r '^[0-9]+x' -- (commandline -ct))
    printf '%s\n' "$count"{{{gpus}}}
end
{lines}complete -c zeroplan -n __fish_use_subcommand -f -a help -d 'Options of a command'
complete -c zeroplan -n '__fish_seen_subcommand_from help' -f -a '{commands}'
{kind_lines})",
      fmt::arg("version", table.version),
      fmt::arg("gpus", fmt::format("{}", fmt::join(catalog_names("gpus"), ","))),
      fmt::arg("lines", lines), fmt::arg("commands", fmt::format("{}", fmt::join(commands, " "))),
      fmt::arg("kind_lines", kind_lines()));
}

}  // namespace zeroplan
