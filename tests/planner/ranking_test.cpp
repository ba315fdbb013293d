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

TEST_CASE("of plans that cost the same the one with less to set up comes first") {
  const Layout plain{.dp = 8, .tp = 2, .pp = 2, .sequence_parallel = true};
  using Change = void (*)(Layout&);
  // Each outweighs those after it: what departs in one of them alone comes after what departs in
  // all that follow.
  const Change changes[] = {
      [](Layout& l) { l.offload = Offload::optimizer; },
      [](Layout& l) { l.recompute = Recompute::full; },
      [](Layout& l) { l.recompute_modules = 1; },
      [](Layout& l) { l.recompute_layers = 1; },
      [](Layout& l) { l.selective_rest = true; },
      [](Layout& l) { l.zero = ZeroStage::optimizer; },
      [](Layout& l) { l.hsdp = 2; },
      [](Layout& l) { l.overlap = Overlap::gradients; },
      [](Layout& l) { l.reduce_bucket = 1; },
      [](Layout& l) { l.reshards_all = true; },
      [](Layout& l) { l.gathered_layers = 1; },
      [](Layout& l) { l.loss_chunks = 1; },
      [](Layout& l) { l.first_stage = 1; },
      [](Layout& l) { l.last_stage = 1; },
      [](Layout& l) { l.cp = 2; },
      [](Layout& l) { l.tp = 4; },            // the same stages, more in all
      [](Layout& l) { l.pp = 4, l.tp = 1; },  // as many in all, more stages
      [](Layout& l) { l.vpp = 2; },
      [](Layout& l) { l.etp = 2; },
      [](Layout& l) { l.ep = 2; },
      [](Layout& l) { l.micro_batch = 2; },
      [](Layout& l) { l.sequence_parallel = false; },
      [](Layout& l) { l.tp_overlap = true; },
      [](Layout& l) { l.schedule = Schedule::interleaved; },
  };
  const auto first = [](const Layout& a, const Layout& b) {
    const auto scored = [](const Layout& l) {
      return Scored{.layout = l, .gpus = 32, .seconds_per_token = 1, .device = Bytes{1}};
    };
    return better(Objective::step, scored(a), scored(b)) &&
           !better(Objective::step, scored(b), scored(a));
  };
  for (std::size_t i = 0; i < std::size(changes); ++i) {
    Layout one = plain;
    changes[i](one);
    Layout others = plain;
    for (std::size_t j = i + 1; j < std::size(changes); ++j) {
      if (one.tp == 4 && j == i + 1) continue;  // which changes tp as well
      changes[j](others);
    }
    CAPTURE(i);
    REQUIRE(first(plain, one));
    REQUIRE(first(others, one));
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
