// What a fit may not see.
#include "tests/holdout/groups.hpp"

#include "tests/catch.hpp"

using namespace zeroplan::holdout;

// Eight and four bits of one model on one GPU are one thing that was measured twice.
TEST_CASE("a group is held out together with those of its name in other families") {
  std::vector<Sample> samples;
  for (const char* family : {"eight bits", "four bits"}) {
    for (const char* group : {"a model on a GPU", "another"}) {
      for (int i = 0; i < 3; ++i) samples.push_back({"", family, group, {}, 1});
    }
  }
  samples.push_back({"", "a small family", "a third", {}, 1});
  Groups groups;
  for (const Sample& s : samples) groups[{s.family, s.group}].push_back(&s);
  const auto seen = all_but(groups, {"eight bits", "a model on a GPU"});
  REQUIRE(seen.size() == 6);
  for (const Sample* s : seen) CHECK(s->group == "another");
  CHECK(all_but(groups, {}).size() == 12);
  // Evenly chosen: each second of three.
  CHECK(all_but(groups, {}, 2).size() == 8);
}
