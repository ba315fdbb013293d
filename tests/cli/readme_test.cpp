// Every command of the README is run, and what it shows is what is printed.
#include <fstream>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"

using namespace zeroplan;

namespace {

struct Example {
  std::string command;
  std::string output;
};

// Of each ```console block: lines that start with "$ ", and what follows each.
std::vector<Example> examples() {
  std::ifstream file(ZEROPLAN_SOURCE_DIR "/README.md");
  std::vector<Example> list;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("```", 0) == 0) {
      inside = line == "```console";
    } else if (inside && line.rfind("$ ", 0) == 0) {
      list.push_back({line.substr(2), ""});
    } else if (inside && !list.empty()) {
      list.back().output += line + "\n";
    }
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

}  // namespace

TEST_CASE("the README shows what the program prints") {
  const auto list = examples();
  REQUIRE(list.size() >= 5);
  for (const Example& example : list) {
    const tests::Run run = tests::shell(with_binaries(example.command));
    CAPTURE(example.command);
    REQUIRE(run.output + run.errors == example.output);
  }
}
