#pragma once
// Private to presets: the command of a shell script that launches a training.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace zeroplan {

struct LaunchCommand {
  std::string script;     // pretrain_gpt.py
  std::string arguments;  // of it, one a line with its values, as read_arguments takes them
  std::optional<std::int64_t> ranks = {};  // that the launcher starts, where it says so
  std::string accelerate_file = {};        // that Accelerate's launcher is given
  std::string refused = {};                // what of the launcher is not read, as a sentence
};

/// The command that runs a Python script with arguments, variables and arrays of the script put in;
/// of several the first whose script is called pretrain, finetune or train. A variable that nothing
/// sets stays as it is written. What sh -c is given is a script, too. Empty where there is no such
/// command. Nothing is executed.
std::optional<LaunchCommand> launch_command(std::string_view text);

}  // namespace zeroplan
