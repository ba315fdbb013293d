// How does a shell learn the words, and the manual? Front door: run_completions.
#include <fmt/format.h>

#include <map>

#include "cli/commands.hpp"
#include "cli/completions/scripts.hpp"
#include "cli/out/standard_output.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {

ExitCode run_completions(const CLI::App& app, const std::string& form) {
  static const std::map<std::string, std::string (*)(const OptionTable&)> writers{
      {"bash", bash_script}, {"fish", fish_script}, {"man", man_page}, {"zsh", zsh_script}};
  const auto writer = writers.find(form);
  if (writer == writers.end()) {
    throw InputError(
        fmt::format("completions: no form {}; there are bash, zsh and fish, and man, the manual",
                    in_quotes(form)));
  }
  write_answer(writer->second(option_table(app)));
  return ExitCode::yes;
}

}  // namespace zeroplan
