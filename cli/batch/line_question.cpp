// What does a line ask? Front door: question_of_line.
#include "cli/batch/line_question.hpp"

#include <CLI/CLI.hpp>

#include "cli/batch/batch.hpp"
#include "cli/request/variants.hpp"
#include "presets/input_error.hpp"

namespace zeroplan {
namespace {

// Options that a line does not say stay as they were typed; a list of settings would be replaced.
template <class Arguments>
void read_line(CLI::App& command, Arguments& question, const std::string& line) {
  std::vector<std::string> settings = std::move(question.layout.set);
  question.layout.set.clear();
  parse_words(command, words_of_line(command, line));
  settings.insert(settings.end(), question.layout.set.begin(), question.layout.set.end());
  question.layout.set = std::move(settings);
  if (!question.batch.empty()) throw InputError("a line cannot have a --batch of its own");
  if (question.page.wanted()) throw InputError("a page is of one question, not of a line");
  for (const std::string& file :
       {question.layout.model, question.layout.config, question.layout.cluster}) {
    if (file == "-") throw InputError("a line cannot read standard input");
  }
  if (variants(question.layout).size() > 1) {
    throw InputError("lists are several questions: a line is one");
  }
}

void check(const PageArguments& page, const OutputOptions& output) {
  if (output.csv) throw InputError("--batch answers in lines of JSON; leave out --csv");
  if (page.wanted()) throw InputError("a page is of one question; leave out --batch, or the page");
}

}  // namespace

FitArguments question_of_line(FitArguments question, const std::string& line) {
  question.batch.clear();
  CLI::App command{"", "fit"};
  add_fit_options(command, question);
  read_line(command, question, line);
  return question;
}

SweepArguments question_of_line(SweepArguments question, const std::string& line) {
  question.batch.clear();
  question.threads.reset();
  CLI::App command{"", "sweep"};
  add_sweep_options(command, question);
  read_line(command, question, line);
  if (question.threads) throw InputError("--threads is of the whole --batch, not of a line");
  if (!question.save.empty()) throw InputError("a line cannot --save plans: its answer has them");
  return question;
}

void check_batch(const FitArguments& typed, const OutputOptions& output) {
  check(typed.page, output);
}

void check_batch(const SweepArguments& typed, const OutputOptions& output) {
  check(typed.page, output);
  if (!typed.save.empty()) throw InputError("--save is of one question; leave it out of --batch");
}

}  // namespace zeroplan
