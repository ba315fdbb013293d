// What a person at a terminal sees beside what a pipe gets. Skipped where no terminal can be made.
#include <cstdlib>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"

using namespace zeroplan;

namespace {

const std::string question =
    "fit llama3-70b --gpus 64xH100-80GB --tp 4 --pp 4 --zero 1 --micro-batch 1";

// In a terminal of its own, by script(1) of util-linux.
std::string in_terminal(const std::string& variables) {
  const tests::Run run = tests::shell(variables + " script -qec \"'" ZEROPLAN_BINARY "' " +
                                      question + "\" /dev/null </dev/null");
  std::string text = run.output;
  std::erase(text, '\r');
  return text;
}

std::vector<std::string> bars(const std::string& text) {
  std::vector<std::string> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("of 79.11 GiB") != std::string::npos && line.find('|') != std::string::npos)
      rows.push_back(line);
  }
  return rows;
}

}  // namespace

TEST_CASE("a terminal gets a bar a stage within its width, a pipe none") {
  if (std::system("command -v script >/dev/null 2>&1") != 0) return;  // not everywhere
  const std::string plain = tests::zeroplan(question).output;
  CHECK(bars(plain).empty());
  for (const std::size_t width : {60, 80, 120}) {
    const std::string text = in_terminal("NO_COLOR=1 LC_ALL=C COLUMNS=" + std::to_string(width));
    const std::vector<std::string> rows = bars(text);
    CAPTURE(width, text);
    REQUIRE(rows.size() == 4);
    for (const std::string& row : rows) {
      CHECK(row.size() <= width);
      CHECK(row.find("PPP") != std::string::npos);
      CHECK(row.find('|') == rows[0].find('|'));
    }
    // The longest bar is the fullest stage's, the first one here.
    const auto length = [](const std::string& row) {
      return row.find_last_not_of(' ', row.find('|') - 1);
    };
    CHECK(length(rows[0]) > length(rows[3]));
    CHECK(text.find("P parameters") != std::string::npos);
  }
  const std::string colored = in_terminal("LC_ALL=C.UTF-8 COLUMNS=80");
  CHECK(colored.find("\u2588") != std::string::npos);
  CHECK(colored.find("PPP") == std::string::npos);
}
