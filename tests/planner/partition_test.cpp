#include "planner/partition.hpp"

#include <algorithm>
#include <random>

#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

// Every way to cut, one after another; gives the least slowest stage.
std::optional<double> by_trying(const PartitionQuestion& q,
                                std::int64_t stage,
                                std::int64_t first) {
  const auto layers = static_cast<std::int64_t>(q.layer_seconds.size());
  const bool last_stage = stage + 1 == q.stages;
  std::optional<double> best;
  double own = stage == 0 ? q.embedding_seconds : 0;
  if (last_stage) own += q.head_seconds;
  for (std::int64_t last = first + 1; last <= layers; ++last) {
    own += q.layer_seconds[static_cast<std::size_t>(last - 1)];
    if (last_stage != (last == layers)) continue;
    if (q.fits && !q.fits(stage, {first, last})) continue;
    const std::optional<double> rest = last_stage ? 0 : by_trying(q, stage + 1, last);
    if (rest && (!best || std::max(own, *rest) < *best)) best = std::max(own, *rest);
  }
  return best;
}

}  // namespace

TEST_CASE("a balanced partition is the best of all splits") {
  std::mt19937 random(1);
  const auto pick = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % n); };
  int impossible = 0;
  for (int i = 0; i < 300; ++i) {
    PartitionQuestion q{.embedding_seconds = static_cast<double>(pick(4)),
                        .head_seconds = static_cast<double>(pick(6)),
                        .stages = 1 + pick(5)};
    const std::int64_t layers = q.stages + pick(7);
    for (std::int64_t k = 0; k < layers; ++k) {
      q.layer_seconds.push_back(static_cast<double>(1 + pick(5)));
    }
    // Early stages have more micro-batches in flight, so they hold fewer layers.
    const std::int64_t room = 6 + pick(20);
    q.fits = [room, stages = q.stages](std::int64_t stage, LayerRange range) {
      return (range.last - range.first) * (stages - stage) <= room;
    };
    const std::optional<double> expected = by_trying(q, 0, 0);
    const std::optional<Partition> found = balanced_partition(q);
    REQUIRE(found.has_value() == expected.has_value());
    if (!found) {
      ++impossible;
      continue;
    }
    REQUIRE(found->slowest == *expected);
    std::int64_t first = 0;
    for (std::int64_t s = 0; s < q.stages; ++s) {
      const std::int64_t size = found->sizes[static_cast<std::size_t>(s)];
      REQUIRE(size >= 1);
      REQUIRE(q.fits(s, {first, first + size}));
      first += size;
    }
    REQUIRE(first == layers);
  }
  REQUIRE(impossible > 0);
}

TEST_CASE("the ends of the model weigh in a partition") {
  PartitionQuestion q{.layer_seconds = std::vector<double>(8, 1.0), .stages = 3};
  q.head_seconds = 2;
  const Partition p = *balanced_partition(q);
  REQUIRE(p.slowest == 4);
  REQUIRE(p.sizes.back() <= 2);
  q.stages = 9;
  REQUIRE(!balanced_partition(q));
}
