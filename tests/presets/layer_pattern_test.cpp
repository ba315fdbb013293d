// Lists of ones and zeros as Megatron-LM's arguments write them.
#include "presets/layer_pattern.hpp"

#include <random>

#include "tests/catch.hpp"

using namespace zeroplan;

using Layers = std::vector<bool>;

TEST_CASE("a pattern is a sum of lists and of brackets, times a number after each") {
  CHECK(read_layer_pattern("[0,1]", 9) == Layers{false, true});
  CHECK(read_layer_pattern("([0]*2+[1]*3)", 9) == Layers{false, false, true, true, true});
  CHECK(read_layer_pattern(" ( [1]*2 + [0] ) * 2 ", 9) ==
        Layers{true, true, false, true, true, false});
  CHECK(read_layer_pattern("[1]+([0]+([1])*2)*2", 9) ==
        Layers{true, false, true, true, false, true, true});
  CHECK(read_layer_pattern("[1]*2*3", 9).size() == 6);
  CHECK(read_layer_pattern("[1]*0+[0]", 9) == Layers{false});
}

TEST_CASE("what is no pattern, or one of more layers than may be, is empty") {
  const std::string_view text =
      GENERATE("", "1", "[]", "[2]", "[1", "[1]]", "([1]", "[1])", "[1]+", "[1]*", "[1]*-1",
               "[1][0]", "[1,]", "3*[1]", "[1]*99999999999999999999", "[1]*9+[0]", "([1]*3)*3+[1]",
               "[1,0,1,0,1,0,1,0,1,0]");
  CAPTURE(text);
  CHECK(read_layer_pattern(text, 9).empty());
  CHECK(read_layer_pattern(std::string(100'000, '('), 9).empty());
}

TEST_CASE("what is written of a list is read as the same") {
  CHECK(layer_pattern({false, false, true}) == "([0]*2+[1]*1)");
  std::mt19937 random(20261129);
  for (int i = 0; i < 100; ++i) {
    Layers list(1 + random() % 40);
    for (std::size_t k = 0; k < list.size(); ++k) list[k] = random() % 2 == 1;
    CHECK(read_layer_pattern(layer_pattern(list), 40) == list);
  }
}
