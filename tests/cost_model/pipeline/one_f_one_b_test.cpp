#include "cost_model/pipeline/one_f_one_b.hpp"

#include <numeric>
#include <random>

#include "cost_model/pipeline/ordered_passes.hpp"
#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

// When the last pass of each rank ends by the passes themselves, all of them.
std::vector<double> played(const std::vector<AlikeRanks<double>>& runs,
                           std::int64_t micro_batches) {
  std::vector<PassTime> passes;
  for (const AlikeRanks<double>& run : runs) {
    passes.insert(passes.end(), static_cast<std::size_t>(run.ranks),
                  {.forward = run.forward, .input_gradient = run.backward});
  }
  const OrderedPasses order({.schedule = Schedule::one_f_one_b,
                             .ranks = static_cast<std::int64_t>(passes.size()),
                             .micro_batches = micro_batches});
  std::vector<double> finished;
  order.finish(passes, 0, finished);
  return finished;
}

// When the first of each run ends.
std::vector<double> ends(const std::vector<AlikeRanks<double>>& runs, std::int64_t micro_batches) {
  std::vector<std::size_t> all(runs.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<double> ends;
  finish_one_f_one_b(runs, micro_batches, all, ends);
  return ends;
}

}  // namespace

TEST_CASE("1F1B's closed form ends each rank when its passes do") {
  std::mt19937 random(5);
  const auto number = [&](int from, int to) {
    return std::uniform_int_distribution<std::int64_t>(from, to)(random);
  };
  const auto seconds = [&] { return std::uniform_real_distribution<>(0.1, 2)(random); };
  for (int i = 0; i < 2000; ++i) {
    std::vector<AlikeRanks<double>> runs;
    std::int64_t ranks = 0;
    for (std::int64_t run = number(1, 5); run > 0; --run) {
      runs.push_back({.ranks = number(1, 6), .forward = seconds(), .backward = seconds()});
      ranks += runs.back().ranks;
    }
    const std::int64_t micro_batches = number(1, 50);
    CAPTURE(i, ranks, micro_batches);
    const std::vector<double> finished = played(runs, micro_batches);
    const std::vector<double> closed = ends(runs, micro_batches);
    std::size_t rank = 0;
    for (std::size_t run = 0; run < runs.size(); ++run) {
      CAPTURE(rank);
      REQUIRE(closed[run] == Approx(finished[rank]).epsilon(1e-12));
      rank += static_cast<std::size_t>(runs[run].ranks);
    }
  }
}

TEST_CASE("equal neighbours may be given together or one by one") {
  const std::vector<AlikeRanks<double>> runs{{1, 0.15, 0.2}, {6, 0.1, 0.2}, {1, 0.1, 0.3}};
  const std::vector<AlikeRanks<double>> parts{
      {1, 0.15, 0.2}, {1, 0.1, 0.2}, {2, 0.1, 0.2}, {3, 0.1, 0.2}, {1, 0.1, 0.3}};
  const std::vector<double> together = ends(runs, 20);
  const std::vector<double> apart = ends(parts, 20);
  REQUIRE(together[0] == apart[0]);
  REQUIRE(together[1] == apart[1]);
  REQUIRE(together[2] == apart[4]);
}

// Narayanan et al. 2021, section 2.2.
TEST_CASE("with equal ranks the bubble is (p - 1) / m") {
  for (const std::int64_t p : {1, 2, 8, 64}) {
    for (const std::int64_t m : {std::int64_t{1}, p / 2 + 1, p, 10 * p}) {
      const double work = static_cast<double>(m) * 3;
      const double bubble = static_cast<double>(p - 1) / static_cast<double>(m);
      const std::vector<AlikeRanks<double>> ranks{{p, 1, 2}};
      REQUIRE(ends(ranks, m)[0] == Approx(work * (1 + bubble)));
    }
  }
}
