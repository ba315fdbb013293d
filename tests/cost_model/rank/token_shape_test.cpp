// Where a token's experts are, on average.
#include "cost_model/rank/token_shape.hpp"

#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

TEST_CASE("a token reaches a place once, however many of its experts are there") {
  MoeSpec moe{.experts = 64, .experts_per_token = 2};
  CHECK(reached_places(1, moe) == 1);
  CHECK(reached_places(2, moe) == Approx(1.5));  // both in the same place half of the time
  moe.experts_per_token = 8;
  CHECK(reached_places(8, moe) < 8);
}

// DeepSeek-V3, section 2.1.2: at most four nodes a token, here of eight.
TEST_CASE("a token that chooses groups of experts first reaches the places of these alone") {
  const MoeSpec deepseek = *find_model("deepseek-v3").spec.moe;
  CHECK(deepseek.router_groups == 8);
  CHECK(deepseek.groups_per_token == 4);
  MoeSpec free = deepseek;
  free.router_groups = free.groups_per_token = 1;
  CHECK(reached_places(8, deepseek) == Approx(reached_places(4, free)));
  CHECK(reached_places(64, deepseek) == Approx(reached_places(32, free)));
  // Two places hold four groups each, and limit nothing.
  CHECK(reached_places(2, deepseek) == Approx(reached_places(2, free)));
}
