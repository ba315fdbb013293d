// Lines and columns within the width of a terminal.
#include "cli/out/fold.hpp"

#include <sstream>

#include "cli/out/text_table.hpp"
#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

}  // namespace

TEST_CASE("letters are counted, not bytes and not codes of color") {
  CHECK(letters("a\u00d7b") == 3);
  CHECK(letters("\x1b[38;5;25m\u2588\u2588\x1b[0m|") == 3);
  CHECK(letters("") == 0);
}

TEST_CASE("a line that is too wide goes on below its second column") {
  CHECK(folded("  --tp N    tensor parallel degree of it\n", 24) ==
        "  --tp N    tensor\n            parallel\n            degree of it\n");
  // Without one, or with one that begins late, two further in.
  CHECK(folded("  one two three four", 12) == "  one two\n    three\n    four");
  CHECK(folded("a very long name of it  9", 24) == "a very long name of it\n  9");
  CHECK(folded("  bytes a  11 = 2 x 5", 14) == "  bytes a  11\n    = 2 x 5");
}

TEST_CASE("what fits stays as it is, and no terminal folds nothing") {
  const std::string text = "  a  b\n\n  c   \nlast";
  CHECK(folded(text, 20) == text);
  const std::string wide(200, 'x');
  CHECK(folded(wide + " " + wide, 0) == wide + " " + wide);
  CHECK(folded(wide, 60) == wide);  // a word has no place to break
}

TEST_CASE("columns without room stand below, beside their keys") {
  TextTable table(1);
  table.add("name", {"ab", "c"}, Align::left);
  table.add("first", {"1", "22"});
  table.add("second", {"333", "4"});
  const std::string whole =
      "name  first  second\n"
      "ab        1     333\n"
      "c        22       4\n";
  CHECK(table.text(0) == whole);
  CHECK(table.text(19) == whole);
  CHECK(table.text(18) ==
        "name  first\nab        1\nc        22\n\nname  second\nab       333\nc          4\n");
  for (const std::string& line : lines(table.text(12))) CHECK(line.size() <= 12);
}
