// What does a request ask? Front door: read_question.
#include "cli/serve/question.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/request/usage_error.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t most_parameters = 100;
constexpr std::size_t longest_value = 2000;

std::vector<std::string> words_of(CLI::App& command, const Parameters& parameters) {
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
      words.push_back(flag ? "--" + name : fmt::format("--{}={}", name, value));
    }
  }
  return words;
}

void parse(CLI::App& command, const Parameters& parameters) {
  command.set_help_flag();
  std::vector<std::string> words = words_of(command, parameters);
  std::reverse(words.begin(), words.end());  // as the parser takes them
  try {
    command.parse(std::move(words));
  } catch (const CLI::ParseError& error) {
    throw InputError(usage_message(command, error));
  }
}

// Whoever asks over the network reads and writes none of this machine's files, nor learns which
// there are.
void require_no_output(const PageArguments& page) {
  if (page.wanted()) throw InputError("files are not written here");
}

FitArguments read_fit(const Parameters& parameters) {
  FitArguments question;
  CLI::App command{"", "fit"};
  add_fit_options(command, question);
  parse(command, parameters);
  require_no_output(question.page);
  question.layout.names_only = true;
  return question;
}

SweepArguments read_sweep(const Parameters& parameters) {
  SweepArguments question;
  CLI::App command{"", "sweep"};
  add_sweep_options(command, question);
  parse(command, parameters);
  require_no_output(question.page);
  if (!question.save.empty()) throw InputError("files are not written here");
  if (question.exhaustive || question.threads) {
    throw InputError("--exhaustive and --threads are for the command line");
  }
  question.layout.names_only = true;
  return question;
}

CompareArguments read_compare(const Parameters& parameters) {
  CompareArguments question;
  CLI::App command{"", "compare"};
  command.add_option("MODEL", question.subjects)->expected(0, 1);
  command.add_option("--a", question.a);
  command.add_option("--b", question.b);
  command.add_flag("--each", question.each);
  add_options_beside_model(command, question.common);
  parse(command, parameters);
  question.common.names_only = true;
  return question;
}

ExplainArguments read_explain(const Parameters& parameters) {
  ExplainArguments question;
  CLI::App command{"", "explain"};
  add_layout_options(command, question.layout);
  command.add_option("--stage", question.stage);
  command.add_option("--row", question.row);
  parse(command, parameters);
  question.layout.names_only = true;
  return question;
}

}  // namespace

const std::vector<std::string>& served_commands() {
  static const std::vector<std::string> all{"fit", "sweep", "compare", "explain"};
  return all;
}

ServedQuestion read_question(const std::string& command, const Parameters& parameters) {
  if (command == "fit") return read_fit(parameters);
  if (command == "sweep") return read_sweep(parameters);
  if (command == "compare") return read_compare(parameters);
  return read_explain(parameters);
}

}  // namespace zeroplan
