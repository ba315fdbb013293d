#include "planner/partition.hpp"

#include <algorithm>
#include <random>

#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

struct Layers {
  std::vector<double> seconds;
  double embedding = 0, head = 0;

  PartitionQuestion split_over(std::int64_t stages) const {
    return {.layers = std::ssize(seconds),
            .stages = stages,
            .seconds = [this, stages](std::int64_t stage, LayerRange range) {
              double sum = stage == 0 ? embedding : 0;
              if (stage + 1 == stages) sum += head;
              for (std::int64_t i = range.first; i < range.last; ++i) {
                sum += seconds[static_cast<std::size_t>(i)];
              }
              return sum;
            }};
  }
};

// Every way to cut, one after another; gives the least slowest stage.
std::optional<double> by_trying(const PartitionQuestion& q,
                                std::int64_t stage,
                                std::int64_t first) {
  const bool last_stage = stage + 1 == q.stages;
  std::optional<double> best;
  for (std::int64_t last = first + 1; last <= q.layers; ++last) {
    if (last_stage != (last == q.layers)) continue;
    if (q.fits && !q.fits(stage, {first, last})) continue;
    const double own = q.seconds(stage, {first, last});
    if (own >= q.below) continue;
    const std::optional<double> rest = last_stage ? 0 : by_trying(q, stage + 1, last);
    if (rest && (!best || std::max(own, *rest) < *best)) best = std::max(own, *rest);
  }
  return best;
}

}  // namespace

TEST_CASE("a balanced partition is the best of all splits") {
  std::mt19937 random(1);
  const auto pick = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % n); };
  int possible = 0, impossible = 0;
  for (int i = 0; i < 600; ++i) {
    Layers layers{.embedding = static_cast<double>(pick(4)), .head = static_cast<double>(pick(6))};
    const std::int64_t stages = 1 + pick(5);
    const std::int64_t count = stages + pick(7);
    for (std::int64_t k = 0; k < count; ++k) {
      layers.seconds.push_back(static_cast<double>(1 + pick(5)));
    }
    PartitionQuestion q = layers.split_over(stages);
    // Early stages have more micro-batches in flight, so they hold fewer layers.
    const std::int64_t room = 6 + pick(20);
    q.fits = [room, stages](std::int64_t stage, LayerRange range) {
      return (range.last - range.first) * (stages - stage) <= room;
    };
    if (pick(2) == 0) q.below = static_cast<double>(5 + pick(20));
    const std::optional<double> expected = by_trying(q, 0, 0);
    const std::optional<Partition> found = balanced_partition(q);
    REQUIRE(found.has_value() == expected.has_value());
    ++(found ? possible : impossible);
    if (!found) continue;
    REQUIRE(found->slowest == *expected);
    std::int64_t first = 0;
    for (std::int64_t s = 0; s < stages; ++s) {
      const std::int64_t size = found->sizes[static_cast<std::size_t>(s)];
      REQUIRE(size >= 1);
      REQUIRE(q.fits(s, {first, first + size}));
      REQUIRE(q.seconds(s, {first, first + size}) <= found->slowest);
      first += size;
    }
    REQUIRE(first == count);
  }
  REQUIRE(possible > 100);
  REQUIRE(impossible > 50);
}

TEST_CASE("the ends of the model weigh in a partition") {
  const Layers layers{.seconds = std::vector<double>(8, 1.0), .head = 2};
  const Partition p = *balanced_partition(layers.split_over(3));
  REQUIRE(p.slowest == 4);
  REQUIRE(p.sizes.back() <= 2);
  REQUIRE(!balanced_partition(layers.split_over(9)));
}
