// What was mistyped? Front door: usage_message.
#include "cli/request/usage_error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

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
  for (const CLI::App* command : app.get_subcommands({})) list.push_back(command->get_name());
  return list;
}

}  // namespace

std::string usage_message(const CLI::App& app, const CLI::ParseError& error) {
  const auto used = app.get_subcommands();
  if (used.empty()) {
    const std::vector<std::string> commands = command_names(app);
    const std::vector<std::string> extra = app.remaining();
    if (extra.empty()) return fmt::format("no command; commands are {}", fmt::join(commands, ", "));
    return fmt::format("no command {}; commands are {}; nearest is {}", in_quotes(extra.front()),
                       fmt::join(commands, ", "), nearest(extra.front(), commands));
  }
  const std::vector<std::string> extra = app.remaining(true);
  if (!extra.empty()) {
    return fmt::format("{} has no option {}; nearest is {}", used.front()->get_name(),
                       in_quotes(extra.front()),
                       nearest(extra.front(), option_names(*used.front())));
  }
  std::string message = error.what();
  std::replace(message.begin(), message.end(), '\n', ' ');
  return fmt::format("{}: {}", used.front()->get_name(), message);
}

}  // namespace zeroplan
