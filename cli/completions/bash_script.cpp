// How does bash complete? Front door: bash_script.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "cli/completions/scripts.hpp"
#include "presets/preset_file.hpp"

namespace zeroplan {
namespace {

std::string joined(const std::vector<std::string>& words) {
  return fmt::format("{}", fmt::join(words, " "));
}

std::vector<std::string> flags_of(const std::vector<OptionWords>& options) {
  std::vector<std::string> flags;
  for (const OptionWords& option : options) {
    flags.insert(flags.end(), option.flags.begin(), option.flags.end());
  }
  return flags;
}

std::vector<std::string> values_of(const OptionWords& option) {
  return option.values.empty() ? catalog_names(option.catalog) : option.values;
}

// One arm of a case: these words, where they are what may come.
std::string arm(const std::string& pattern, const std::vector<std::string>& words) {
  return fmt::format("    {}) words='{}' ;;\n", pattern, joined(words));
}

// What may follow a flag; nothing but files where it takes a value that is not listed.
std::string after_flags(const OptionTable& table) {
  std::string arms;
  std::set<std::string> others;
  for (const SharedOption& shared : shared_options(table)) {
    if (!shared.option.takes_value) continue;
    const std::vector<std::string> values = values_of(shared.option);
    const std::string pattern = fmt::format("{}", fmt::join(shared.option.flags, "|"));
    if (values.empty()) {
      others.insert(pattern);
    } else {
      arms += arm(pattern, values);
    }
  }
  return arms + fmt::format("    {}) return ;;\n", fmt::join(others, "|"));
}

// What stands at a command's places, and its options where a dash was typed.
std::string in_commands(const OptionTable& table, bool options) {
  std::string arms;
  for (const CommandWords& command : table.commands) {
    std::vector<std::string> words =
        options ? flags_of(command.options) : std::vector<std::string>{};
    if (!options) {
      for (const OptionWords& place : command.places) {
        const std::vector<std::string> values = values_of(place);
        words.insert(words.end(), values.begin(), values.end());
      }
    }
    arms += arm(command.name, words);
  }
  return arms;
}

// A catalog's names, which follow the kind's.
std::string after_kinds() {
  std::string arms;
  for (const std::string& kind : preset_kinds()) arms += arm(kind, catalog_names(kind));
  return arms;
}

}  // namespace

std::string bash_script(const OptionTable& table) {
  std::vector<std::string> commands;
  for (const CommandWords& command : table.commands) commands.push_back(command.name);
  return fmt::format(
      R"(# bash completion of {version}, from its option table: source <(zeroplan completions bash)
_zeroplan() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD - 1]}} count='' words=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{commands} help {first}' -- "$word"))
    return
  fi
  case $before in
    help) words='{commands}' ;;
{after_flags}  esac
  if [ "${{COMP_WORDS[1]}}" = presets ]; then
    case $before in
{after_kinds}    esac
  fi
  if [ -z "$words" ]; then
    case $word in
      -*) case ${{COMP_WORDS[1]}} in
{options}      esac ;;
      *) case ${{COMP_WORDS[1]}} in
{places}      esac ;;
    esac
  elif [ "$before" = --gpus ] && [[ $word =~ ^[0-9]+x ]]; then
    count=${{BASH_REMATCH[0]}}
  fi
  COMPREPLY=($(compgen -P "$count" -W "$words" -- "${{word#"$count"}}"))
}}
complete -o default -F _zeroplan zeroplan
)",
      fmt::arg("version", table.version), fmt::arg("commands", joined(commands)),
      fmt::arg("first", joined(flags_of(table.options))),
      fmt::arg("after_flags", after_flags(table)), fmt::arg("after_kinds", after_kinds()),
      fmt::arg("options", in_commands(table, true)), fmt::arg("places", in_commands(table, false)));
}

}  // namespace zeroplan
