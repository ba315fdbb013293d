#include "cost_model/allocator/free_blocks.hpp"

#include <random>
#include <set>

#include "tests/catch.hpp"

using namespace zeroplan;
using namespace zeroplan::allocator;

TEST_CASE("free blocks stay in the order of best fit however many there are") {
  std::mt19937 random(7);
  FreeBlocks list;
  std::set<FreeBlock> expected;
  const auto draw = [&](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(1, most)(random);
  };
  const auto same = [](const FreeBlock& a, const FreeBlock& b) {
    return a.size == b.size && a.address == b.address && a.id == b.id;
  };
  for (std::int64_t i = 0; i < 4'000; ++i) {
    const bool grows = i % 2'000 < 1'200;
    const auto any = [&] {
      auto block = expected.begin();
      std::advance(block, draw(std::ssize(expected)) - 1);
      return block;
    };
    const FreeBlock block{draw(40), i, static_cast<BlockId>(i)};
    if (expected.empty() || draw(10) <= (grows ? 8 : 2)) {
      list.insert(block);
      expected.insert(block);
    } else if (draw(2) == 1) {
      const auto victim = any();
      draw(2) == 1 ? list.erase(*victim) : list.erase(list.lower_bound(*victim));
      expected.erase(victim);
    } else {
      const auto old = any();
      draw(2) == 1 ? list.replace(*old, block) : list.replace(list.lower_bound(*old), block);
      expected.erase(old);
      expected.insert(block);
    }
    REQUIRE(list.empty() == expected.empty());
    if (expected.empty()) continue;
    REQUIRE(same(list.largest(), *expected.rbegin()));
    const FreeBlock wanted{draw(41), 0, BlockId{-1}};
    const auto fit = list.lower_bound(wanted);
    const auto best = expected.lower_bound(wanted);
    REQUIRE((fit == list.end()) == (best == expected.end()));
    if (best != expected.end()) REQUIRE(same(*fit, *best));
    if (i % 100 == 0) {
      REQUIRE(std::equal(list.begin(), list.end(), expected.begin(), expected.end(), same));
    }
  }
}
