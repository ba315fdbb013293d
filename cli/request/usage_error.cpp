// What was mistyped? Front door: usage_message.
#include "cli/request/usage_error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/request/words.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> list;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) list.push_back("--" + name);
  }
  return list;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> list;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (!command->get_group().empty()) list.push_back(command->get_name());
  }
  return list;
}

std::string near(const std::string& typed, const std::vector<std::string>& known) {
  const std::string name = near_name(typed, known);
  return name.empty() ? "" : "; nearest is " + name;
}

// What is meant by it, else the nearest, else where to look.
std::string no_such_option(const CLI::App& command, const std::string& typed) {
  std::string hint = option_meant(typed);
  if (hint.empty()) hint = near(typed, option_names(command));
  if (hint.empty()) hint = fmt::format("; zeroplan help {} lists them", command.get_name());
  const bool option = typed.starts_with('-');
  return fmt::format("{} has no {} {}{}", command.get_name(), option ? "option" : "place for",
                     in_quotes(typed), hint);
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const bool alone = app.get_subcommands({}).empty();  // a command without the program around it
  const auto used = alone ? std::vector{const_cast<CLI::App*>(&app)} : app.get_subcommands();
  if (used.empty()) {
    const std::vector<std::string> commands = command_names(app);
    const std::vector<std::string> extra = app.remaining();
    if (extra.empty()) {
      return fmt::format("no command; commands are {}; zeroplan help COMMAND shows its options",
                         fmt::join(commands, ", "));
    }
    return fmt::format("no command {}; commands are {}{}", in_quotes(extra.front()),
                       fmt::join(commands, ", "), near(extra.front(), commands));
  }
  const std::vector<std::string> extra = app.remaining(true);
  if (!extra.empty()) return no_such_option(*used.front(), extra.front());
  std::string message = error.what();
  std::replace(message.begin(), message.end(), '\n', ' ');
  return fmt::format("{}: {}", used.front()->get_name(), message);
}

}  // namespace zeroplan
