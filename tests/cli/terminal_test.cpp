// What a person at a terminal sees beside what a pipe gets. Skipped where no terminal can be made.
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "tests/catch.hpp"
#include "tests/cli/run.hpp"
#include "tests/draws.hpp"

using namespace zeroplan;

namespace {

const std::string question =
    "fit llama3-70b --gpus 64xH100-80GB --tp 4 --pp 4 --zero 1 --micro-batch 1";

// Not everywhere.
bool no_terminal() {
  return std::system("command -v script >/dev/null 2>&1") != 0;
}

// In a terminal of its own, by script(1) of util-linux.
std::string in_terminal(const std::string& variables, const std::string& arguments = question) {
  const tests::Run run = tests::shell(variables + " script -qec \"'" ZEROPLAN_BINARY "' " +
                                      arguments + " 2>/dev/null\" /dev/null </dev/null");
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

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Letters; a word that has no place to break may be longer than a line.
bool within(const std::string& line, std::size_t width) {
  const auto letters = static_cast<std::size_t>(std::ranges::count_if(
      line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
  const std::size_t start = std::min(line.find_first_not_of(' '), line.size());
  return letters <= width || line.find(' ', start) == std::string::npos;
}

}  // namespace

TEST_CASE("every screen is within the terminal") {
  if (no_terminal()) return;
  const std::string dense = "llama3-8b --gpus 8xH100-80GB --tp 2 --pp 2 --zero 1 --micro-batch 1 ";
  for (const std::string& screen : {
           std::string("--help"),
           std::string("sweep --help"),
           std::string("presets clusters"),
           std::string("presets runtimes"),
           "fit " + dense + "--tokens 1T --price 2/h",
           std::string("fit llama3-8b --gpus 8xH100,8xA100 --seq 8k,32k --tokens 300B"),
           std::string("sweep mixtral-8x7b --gpus 64xH100-80GB --top 5 --front"),
           std::string("sweep llama3-70b --gpus 4xA100-40GB"),
           "compare " + dense + "--a '--recompute none' --b '--recompute full'",
           "explain " + dense,
           "explain " + dense + "--ranks",
           "timeline " + dense,
           "story " + dense,
           std::string("validate llama3-8b --gpus 2xH100-80GB --tp 1 --pp 1 --zero 3 --backend "
                       "host --steps 2"),
       }) {
    for (const std::size_t width : {60, 80, 120}) {
      if (zeroplan::tests::sanitized && width > 60) continue;  // the narrowest breaks most lines
      const std::string text =
          in_terminal("NO_COLOR=1 LC_ALL=C.UTF-8 COLUMNS=" + std::to_string(width), screen);
      CAPTURE(screen, width);
      CHECK(text.size() > 300);
      for (const std::string& line : lines_of(text)) {
        CAPTURE(line);
        CHECK(within(line, width));
      }
    }
  }
}

TEST_CASE("a terminal gets the front drawn, with letters alone where it has no others") {
  if (no_terminal()) return;
  const std::string sweep = "sweep llama3-8b --gpus 8xH100-80GB --top 5 --front";
  const std::string legend = "the front of all layouts";
  CHECK(tests::zeroplan(sweep).output.find(legend) == std::string::npos);  // a pipe gets none
  CHECK(in_terminal("COLUMNS=80", sweep.substr(0, sweep.rfind(' '))).find(legend) ==
        std::string::npos);
  for (const std::size_t width : {60, 80, 120}) {
    const std::string text =
        in_terminal("NO_COLOR=1 LC_ALL=C COLUMNS=" + std::to_string(width), sweep);
    CAPTURE(text);
    const std::vector<std::string> lines = lines_of(text);
    const auto title = std::ranges::find(lines, "tok/s/GPU");
    REQUIRE(lines.end() - title > 17);
    std::size_t stars = 0, numbers = 0, dots = 0, widest = 0, capacity = 0;
    for (auto line = title + 1; line != title + 15; ++line) {
      REQUIRE(line->find('|') == 8);
      const std::string drawn = line->substr(9);
      stars += static_cast<std::size_t>(std::ranges::count(drawn, '*'));
      numbers += static_cast<std::size_t>(
          std::ranges::count_if(drawn, [](char c) { return c >= '1' && c <= '5'; }));
      dots += static_cast<std::size_t>(std::ranges::count(drawn, '.'));
      capacity += static_cast<std::size_t>(std::ranges::count(drawn, '|'));
      CHECK(drawn.find_first_not_of(" .|*12345") == std::string::npos);
      widest = std::max(widest, line->size());
    }
    CHECK(stars == 1);
    CHECK(numbers >= 1);
    CHECK(numbers <= 4);  // one may hide another
    CHECK(dots > width / 4);
    CHECK(capacity >= 10);  // but where the front crosses it
    CHECK(widest <= width);
    CHECK((title + 16)->find("79.11 GiB") != std::string::npos);
    CHECK(text.find("\xe2\xa0") == std::string::npos);
  }
  const std::string blocks = in_terminal("LC_ALL=C.UTF-8 COLUMNS=80", sweep);
  CHECK(blocks.find("\xe2\xa0") != std::string::npos);  // Braille
  CHECK(blocks.find("\x1b[38;5;166m*") != std::string::npos);
}

TEST_CASE("a terminal gets a bar a stage within its width, a pipe none") {
  if (no_terminal()) return;
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
