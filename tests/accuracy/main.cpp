// script/accuracy: predicts each row of a measured corpus and says how far off.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string_view>

#include "presets/input_error.hpp"
#include "tests/accuracy/record.hpp"
#include "tests/accuracy/report.hpp"
#include "tests/source_dir.hpp"

using namespace zeroplan;
using namespace zeroplan::accuracy;

namespace {

constexpr const char* usage =
    "usage: script/accuracy [FILE.jsonl ...] [--json] [--rows]\n"
    "       script/accuracy --check | --record";

struct Options {
  std::vector<std::string> files;
  bool json = false;
  bool rows = false;
  bool check = false;   // against what is recorded of the project's own corpus
  bool record = false;  // anew
  bool help = false;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--json") {
      options.json = true;
    } else if (word == "--rows") {
      options.rows = true;
    } else if (word == "--check") {
      options.check = true;
    } else if (word == "--record") {
      options.record = true;
    } else if (word == "--help" || word == "-h") {
      options.help = true;
    } else if (word.starts_with('-')) {
      throw InputError(fmt::format("unknown option {}; {}", word, usage));
    } else {
      options.files.emplace_back(word);
    }
  }
  if ((options.check || options.record) && !options.files.empty()) {
    throw InputError("what is recorded is of the project's own corpus");
  }
  if (options.files.empty()) {
    const auto add = [&](const char* name) {
      options.files.push_back(fmt::format("{}/tests/reference/{}", source_dir(), name));
    };
    std::ranges::for_each(published_steps, add);
    for (const char* name :
         {"harness.jsonl", "traced/transformers.jsonl", "traced/torchtitan.jsonl",
          "traced/ddp.jsonl", "traced/deepspeed.jsonl", "traced/megatron.jsonl",
          "traced/nanotron.jsonl", "gpu/steps.jsonl"}) {
      add(name);
    }
  }
  return options;
}

const std::string recorded_figures = source_dir() + "/tests/reference/accuracy.jsonl";

// What stands in the file; the exit code.
int check(const Report& report) {
  std::ifstream file(recorded_figures);
  std::ostringstream recorded;
  recorded << file.rdbuf();
  const std::vector<std::string> worse = worse_than(report, recorded.str());
  for (const std::string& line : worse) fmt::print("worse than recorded: {}\n", line);
  if (!worse.empty()) fmt::print("where that is meant: script/accuracy --record\n");
  return worse.empty() ? 0 : 1;
}

int run(const Options& options) {
  std::vector<Row> rows;
  for (const std::string& file : options.files) {
    for (Row& row : read_corpus(file)) rows.push_back(std::move(row));
  }
  const Report report = assess(rows);
  if (options.json) {
    fmt::print("{}", accuracy::json(report));
    return 0;
  }
  if (options.rows) fmt::print("{}", rows_table(report));
  fmt::print("{}", table(report));
  if (options.record) std::ofstream(recorded_figures) << record(report);
  return options.check ? check(report) : 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse(argc, argv);
  if (options.help) {
    fmt::print("{}\n", usage);
    return 0;
  }
  return run(options);
} catch (const std::exception& error) {
  fmt::print(stderr, "accuracy: error: {}\n", error.what());
  return 2;
}
