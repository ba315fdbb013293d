// How does zsh complete? Front door: zsh_script.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/completions/scripts.hpp"
#include "presets/preset_file.hpp"

namespace zeroplan {
namespace {

// Text between single quotes, in which a specification of _arguments or _describe has its own
// signs: brackets and colons.
std::string zsh_quoted(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

// What comes at a place: listed words, or files.
std::string action(const OptionWords& option) {
  if (option.flags.back() == "--gpus") return "_zeroplan_gpus";
  if (option.flags.back() == "NAME") return "_zeroplan_names";
  if (!option.values.empty()) return fmt::format("({})", fmt::join(option.values, " "));
  if (!option.catalog.empty()) return "_zeroplan_" + option.catalog;
  return "_files";
}

std::string specification(const OptionWords& option) {
  std::string value;
  if (option.takes_value) {
    value = fmt::format(":{}:{}", option.flags.back().substr(2), action(option));
  }
  const std::string meaning = zsh_quoted(option.meaning);
  if (option.flags.size() == 1) {
    return fmt::format("'{}[{}]{}'", option.flags.front(), meaning, value);
  }
  return fmt::format("'({})'{{{}}}'[{}]{}'", fmt::join(option.flags, " "),
                     fmt::join(option.flags, ","), meaning, value);
}

std::string command_arm(const CommandWords& command) {
  std::string arm = fmt::format("        {})\n          _arguments", command.name);
  for (const OptionWords& option : command.options) {
    arm += " \\\n            " + specification(option);
  }
  for (const OptionWords& place : command.places) {
    arm += fmt::format(" \\\n            ':{}:{}'", place.flags.front(), action(place));
  }
  return arm + " ;;\n";
}

// A function for each catalog whose names stand beside files.
std::string catalogs() {
  std::string functions;
  for (const std::string& kind : preset_kinds()) {
    functions +=
        fmt::format("_zeroplan_{0}() {{\n  _alternative '{0}:{0}:({1})' 'files:file:_files'\n}}\n",
                    kind, fmt::join(catalog_names(kind), " "));
  }
  return functions;
}

}  // namespace

std::string zsh_script(const OptionTable& table) {
  std::string commands, first, arms;
  for (const CommandWords& command : table.commands) {
    commands += fmt::format("    '{}:{}'\n", command.name, zsh_quoted(command.meaning));
    arms += command_arm(command);
  }
  commands += "    'help:Options of a command'\n";
  for (const OptionWords& option : table.options) first += " " + specification(option);
  return fmt::format(
      R"(#compdef zeroplan
# zsh completion of {version}, from its option table: zeroplan completions zsh >DIRECTORY_OF_FPATH/_zeroplan
{catalogs}_zeroplan_gpus() {{
  compset -P '[0-9]##x'
  local -a names=({gpus})
  compadd -a names
}}
_zeroplan_names() {{
  "_zeroplan_${{words[2]:-models}}"
}}
_zeroplan() {{
  setopt localoptions extendedglob
  local context state state_descr line
  typeset -A opt_args
  local -a commands=(
{commands}  )
  _arguments -C{first} ':command:->command' '*::argument:->argument'
  case $state in
    command) _describe command commands ;;
    argument)
      case $words[1] in
        help) _describe command commands ;;
{arms}      esac ;;
  esac
}}
if [ "$funcstack[1]" = _zeroplan ]; then
  _zeroplan "$@"
else
  compdef _zeroplan zeroplan
fi
)",
      fmt::arg("version", table.version), fmt::arg("catalogs", catalogs()),
      fmt::arg("gpus", fmt::format("{}", fmt::join(catalog_names("gpus"), " "))),
      fmt::arg("commands", commands), fmt::arg("first", first), fmt::arg("arms", arms));
}

}  // namespace zeroplan
