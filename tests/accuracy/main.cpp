// script/accuracy: predicts each row of a measured corpus and says how far off.
#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "presets/input_error.hpp"
#include "tests/accuracy/report.hpp"

using namespace zeroplan;
using namespace zeroplan::accuracy;

namespace {

constexpr const char* usage = "usage: script/accuracy [FILE.jsonl ...] [--json] [--rows]";

struct Options {
  std::vector<std::string> files;
  bool json = false;
  bool rows = false;
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
    } else if (word == "--help" || word == "-h") {
      options.help = true;
    } else if (word.starts_with('-')) {
      throw InputError(fmt::format("unknown option {}; {}", word, usage));
    } else {
      options.files.emplace_back(word);
    }
  }
  if (options.files.empty()) {
    for (const char* name : {"measured.jsonl", "measured_more.jsonl", "timing.jsonl",
                             "harness.jsonl", "nvidia_tables.jsonl"}) {
      options.files.push_back(fmt::format("{}/tests/reference/{}", ZEROPLAN_SOURCE_DIR, name));
    }
  }
  return options;
}

void run(const Options& options) {
  std::vector<Row> rows;
  for (const std::string& file : options.files) {
    for (Row& row : read_corpus(file)) rows.push_back(std::move(row));
  }
  const Report report = assess(rows);
  if (options.json) {
    fmt::print("{}", accuracy::json(report));
    return;
  }
  if (options.rows) fmt::print("{}", rows_table(report));
  fmt::print("{}", table(report));
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse(argc, argv);
  if (options.help) {
    fmt::print("{}\n", usage);
    return 0;
  }
  run(options);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "accuracy: error: {}\n", error.what());
  return 2;
}
