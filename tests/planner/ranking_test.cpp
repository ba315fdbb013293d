#include "planner/sweep/ranking.hpp"

#include <algorithm>
#include <random>

#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

// Few values, so that ties are common.
std::vector<Scored> random_plans(unsigned seed, std::size_t count) {
  std::mt19937 random(seed);
  const auto pick = [&](std::int64_t n) { return static_cast<std::int64_t>(random() % n) + 1; };
  std::vector<Scored> plans;
  for (std::size_t i = 0; i < count; ++i) {
    Scored s{.layout = {.tp = pick(4), .pp = pick(4), .micro_batch = pick(3)}, .gpus = 8};
    s.seconds_per_token = static_cast<double>(pick(12));
    s.device = Bytes{pick(12)};
    plans.push_back(s);
  }
  return plans;
}

bool same(const std::vector<Scored>& a, const std::vector<Scored>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Scored& x, const Scored& y) {
    return x.layout == y.layout && x.seconds_per_token == y.seconds_per_token &&
           x.device == y.device;
  });
}

}  // namespace

TEST_CASE("the best shapes are the first of each shape in the total order") {
  const auto objective = GENERATE(Objective::step, Objective::headroom, Objective::cost);
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::vector<Scored> plans = random_plans(seed, 60);
    BestShapes best(objective, 5);
    for (const Scored& p : plans) best.add(p);
    std::sort(plans.begin(), plans.end(),
              [&](const Scored& a, const Scored& b) { return better(objective, a, b); });
    std::vector<Scored> expected;
    for (const Scored& p : plans) {
      const bool seen = std::any_of(expected.begin(), expected.end(),
                                    [&](const Scored& e) { return same_shape(e, p); });
      if (!seen && expected.size() < 5) expected.push_back(p);
    }
    REQUIRE(same(best.plans(), expected));
  }
}

TEST_CASE("the front holds what nothing beats in both, whatever the order of adding") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::vector<Scored> plans = random_plans(seed, 40);
    ParetoFront front;
    front.add(plans);
    for (const Scored& p : plans) {
      const bool beaten = std::any_of(plans.begin(), plans.end(), [&](const Scored& o) {
        const bool no_worse = o.seconds_per_token <= p.seconds_per_token && o.device <= p.device;
        return no_worse && (o.seconds_per_token < p.seconds_per_token || o.device < p.device);
      });
      REQUIRE(front.beats(p.seconds_per_token, p.device) == beaten);
      const bool inside =
          std::any_of(front.plans().begin(), front.plans().end(), [&](const Scored& f) {
            return f.seconds_per_token == p.seconds_per_token && f.device == p.device;
          });
      REQUIRE(inside == !beaten);
    }
    std::reverse(plans.begin(), plans.end());
    ParetoFront backwards;
    backwards.add(plans);
    REQUIRE(same(front.plans(), backwards.plans()));
  }
}
