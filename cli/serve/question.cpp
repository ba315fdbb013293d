// What does a request ask? Front door: read_question.
#include "cli/serve/question.hpp"

#include <CLI/CLI.hpp>

#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

void parse(CLI::App& command, const Parameters& parameters) {
  parse_words(command, words_of(command, parameters));
}

// Whoever asks over the network reads and writes none of this machine's files, nor learns which
// there are.
void require_no_files(const PageArguments& page, const std::string& batch) {
  if (page.wanted()) throw InputError("files are not written here");
  if (!batch.empty()) throw InputError("files are not read here");
}

FitArguments read_fit(const Parameters& parameters) {
  FitArguments question;
  CLI::App command{"", "fit"};
  add_fit_options(command, question);
  parse(command, parameters);
  require_no_files(question.page, question.batch);
  question.layout.names_only = true;
  return question;
}

SweepArguments read_sweep(const Parameters& parameters) {
  SweepArguments question;
  CLI::App command{"", "sweep"};
  add_sweep_options(command, question);
  parse(command, parameters);
  require_no_files(question.page, question.batch);
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
