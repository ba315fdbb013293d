// Checks published table rows. One line for each that fails, then how many passed, failed and were
// skipped.
#include <fmt/format.h>

#include <fstream>
#include <map>

#include "tests/papers/case.hpp"
#include "tests/source_dir.hpp"

using namespace zeroplan::papers;

int main(int argc, char** argv) {
  const std::string path =
      argc > 1 ? argv[1] : zeroplan::source_dir() + "/tests/reference/paper_cases.jsonl";
  const bool reasons = argc > 2 && std::string(argv[2]) == "--skips";
  std::ifstream file(path);
  if (!file) {
    fmt::print(stderr, "papers: error: cannot read {}\n", path);
    return 2;
  }
  std::map<Outcome, int> counts;
  std::map<std::string, int> skips;
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.empty()) continue;
    try {
      const Json row = Json::parse(line);
      const Result result = check(row);
      ++counts[result.outcome];
      if (result.outcome == Outcome::failed)
        fmt::print("{}: {}\n", row.value("id", "?"), result.text);
      if (result.outcome == Outcome::skipped) ++skips[result.text];
    } catch (const std::exception& error) {
      fmt::print(stderr, "papers: error: {}:{}: {}\n", path, number, error.what());
      return 2;
    }
  }
  if (reasons) {
    for (const auto& [reason, count] : skips) fmt::print("skipped {:>4}  {}\n", count, reason);
  }
  fmt::print("{} passed, {} failed, {} skipped\n", counts[Outcome::passed], counts[Outcome::failed],
             counts[Outcome::skipped]);
  return counts[Outcome::failed] == 0 ? 0 : 1;
}
