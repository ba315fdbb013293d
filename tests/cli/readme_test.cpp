// Every command of the READMEs is run, and what they show is what is printed. Where the environment
// has ZEROPLAN_UPDATE_CONSOLES, what is printed is written there instead.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"
#include "tests/source_dir.hpp"

using namespace zeroplan;

namespace {

// A command in a ```console block, on a line that starts with "$ ", with the text up to it and what
// it shows.
struct Example {
  std::string before;
  std::string command;  // empty at the end of the text
  std::string shown;
};

std::vector<Example> examples(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::vector<Example> list{{}};
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("```", 0) == 0) inside = line == "```console";
    const bool starts = inside && line.rfind("$ ", 0) == 0;
    const bool shown = inside && !starts && !list.back().command.empty();
    if (!shown && !list.back().command.empty()) list.push_back({});
    (shown ? list.back().shown : list.back().before) += line + "\n";
    if (starts) list.back().command = line.substr(2);
  }
  return list;
}

// The scripts build first; here the binaries under test stand in for them.
std::string with_binaries(std::string command) {
  for (const auto& [script, binary] : {std::pair{"script/run", ZEROPLAN_BINARY},
                                       {"script/papers", ZEROPLAN_PAPERS},
                                       {"script/accuracy", ZEROPLAN_ACCURACY}}) {
    const std::size_t at = command.find(script);
    if (at != std::string::npos) return command.replace(at, std::string(script).size(), binary);
  }
  FAIL("no stand-in for: " << command);
  return command;
}

std::vector<std::filesystem::path> texts() {
  const std::filesystem::path root = source_dir();
  std::vector<std::filesystem::path> list{root / "README.md"};
  for (const char* room :
       {"cost_model", "planner", "presets", "validator", "gpu_probe", "cli", "tests"}) {
    for (const auto& entry : std::filesystem::directory_iterator(root / room)) {
      if (entry.path().extension() == ".md") list.push_back(entry.path());
    }
  }
  std::sort(list.begin(), list.end());
  return list;
}

}  // namespace

TEST_CASE("the READMEs show what the program prints") {
  const bool update = std::getenv("ZEROPLAN_UPDATE_CONSOLES") != nullptr;
  int commands = 0;
  for (const std::filesystem::path& path : texts()) {
    std::string text;
    for (const Example& example : examples(path)) {
      text += example.before;
      if (example.command.empty()) continue;
      ++commands;
      CAPTURE(path.string(), example.command);
      const tests::Run run = tests::shell(with_binaries(example.command));
      text += run.output + run.errors;
      if (!update) REQUIRE(run.output + run.errors == example.shown);
    }
    if (update) std::ofstream(path) << text;
  }
  REQUIRE(commands >= 20);
}
