// script/holdout: fits the constants of step time on all groups of measured rows but one, and says
// how far off the law is on that one.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <string_view>

#include "presets/input_error.hpp"
#include "tests/holdout/bands.hpp"
#include "tests/holdout/report.hpp"
#include "tests/source_dir.hpp"

using namespace zeroplan;
using namespace zeroplan::holdout;

namespace {

constexpr const char* usage =
    "usage: script/holdout [FILE.jsonl ...] [--fit] [--study NAME] [--set NAME=VALUE ...]\n"
    "       script/holdout [FILE.jsonl ...] --bands [--far]";

struct Options {
  std::vector<std::string> files;
  TimeConstants constants;
  bool fit = false;
  bool bands = false;
  bool far = false;
  std::string study;  // empty: all
};

void set_constant(TimeConstants& constants, std::string_view text) {
  const std::size_t sign = text.find('=');
  const Constant* constant = find_constant(text.substr(0, sign));
  double value = 0;
  const char* end = text.data() + text.size();
  const bool number = sign != std::string_view::npos &&
                      std::from_chars(text.data() + sign + 1, end, value).ptr == end && value > 0;
  if (constant == nullptr || !number) {
    throw InputError(fmt::format("{}: no constant with a positive value; {}", text, usage));
  }
  constant->of(constants) = value;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool takes_value = word == "--study" || word == "--set";
    if (takes_value && i + 1 == argc) {
      throw InputError(fmt::format("{} needs a value; {}", word, usage));
    }
    if (word == "--fit") {
      options.fit = true;
    } else if (word == "--bands") {
      options.bands = true;
    } else if (word == "--far") {
      options.far = true;
    } else if (word == "--study") {
      options.study = argv[++i];
    } else if (word == "--set") {
      set_constant(options.constants, argv[++i]);
    } else if (word.starts_with('-')) {
      throw InputError(fmt::format("unknown option {}; {}", word, usage));
    } else {
      options.files.emplace_back(word);
    }
  }
  if (options.files.empty()) {
    for (const char* name : accuracy::published_steps) {
      options.files.push_back(fmt::format("{}/tests/reference/{}", source_dir(), name));
    }
  }
  return options;
}

int run(const Options& options) {
  std::vector<accuracy::Row> rows;
  for (const std::string& file : options.files) {
    for (accuracy::Row& row : accuracy::read_corpus(file)) rows.push_back(std::move(row));
  }
  const std::vector<Sample> samples = samples_of(rows);
  if (options.bands) {
    const std::vector<HeldOut> steps = held_out(samples);
    constexpr double far = 0.1;
    if (options.far) print_far(steps, far);
    return print_bands(coverage(steps)) == 0 ? 0 : 1;
  }
  for (const Study& study : studies()) {
    if (!options.study.empty() && study.name != options.study) continue;
    print_study(study, samples, options.constants, options.fit);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return run(parse(argc, argv));
} catch (const std::exception& error) {
  fmt::print(stderr, "holdout: error: {}\n", error.what());
  return 2;
}
