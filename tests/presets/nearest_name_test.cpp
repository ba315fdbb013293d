#include "presets/nearest_name.hpp"

#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace zeroplan;

TEST_CASE("edit distance counts insertions, removals, replacements and swaps") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("kitten", "sitting") == 3);
  CHECK(edit_distance("27b", "72b") == 1);
  CHECK(edit_distance("H100", "h100") == 0);
}

TEST_CASE("the nearest name is the one with the fewest edits") {
  const std::vector<std::string> names{"llama3-8b", "llama3-70b", "qwen2.5-72b"};
  CHECK(nearest("lama3-8b", names) == "llama3-8b");
  CHECK(nearest("QWEN-72B", names) == "qwen2.5-72b");
  CHECK(nearest("73b", std::vector<std::string>{"3b", "72b"}) == "72b");  // the same length first
  CHECK(nearest("qwen", names) == "qwen2.5-72b");                         // cut short
  CHECK(nearest("llama-70b", std::vector<std::string>{"llama-30b", "llama3-70b"}) == "llama3-70b");
  CHECK(nearest("qwen2-72b", std::vector<std::string>{"qwen3-32b", "qwen2.5-72b"}) ==
        "qwen2.5-72b");
  CHECK(nearest("x", {}).empty());
  CHECK_FALSE(nearest(std::string(100'000'000, 'x'), names).empty());  // no minutes of work
}

TEST_CASE("quoted text fits on one line") {
  CHECK(in_quotes("a\nb\x1b") == "'a?b?'");
  CHECK(in_quotes(std::string(200, 'x')) == "'" + std::string(60, 'x') + "...'");
  CHECK(in_quotes(std::string(59, 'x') + "\xc3\xa9") == "'" + std::string(59, 'x') + "...'");
}

TEST_CASE("a name is near where a third of it differs at most") {
  const std::vector<std::string> names{"llama3-8b", "qwen2.5-72b", "kimi-k2-instruct"};
  CHECK(near_name("lama3-8b", names) == "llama3-8b");
  CHECK(near_name("qwen2.5", names) == "qwen2.5-72b");
  CHECK(near_name("llama3-8b-instruct", names) == "llama3-8b");
  CHECK(near_name("command-r-plus", names).empty());
  CHECK(near_name("llama3-70b-instruct", names).empty());
  CHECK(near_name("x", {}).empty());
}

TEST_CASE("signs between words do not tell names apart") {
  CHECK(plain_name("Llama3_70b") == "llama3-70b");
  CHECK(plain_name("llama3:70b") == "llama3-70b");
  CHECK(plain_name("qwen2.5-72b") == "qwen2.5-72b");
}
