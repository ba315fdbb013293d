#include "cost_model/step/rounds.hpp"

#include <random>

#include "cost_model/step/ordered_passes.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

// Equal layers, but for what embedding and head add and for fewer of them beside these.
TEST_CASE("a pace that is known is what a round more takes, in pipelines like real ones") {
  std::mt19937 random(5);
  const auto between = [&](double a, double b) {
    return std::uniform_real_distribution<>(a, b)(random);
  };
  int known = 0;
  constexpr int all = 300;
  for (int i = 0; i < all; ++i) {
    const std::int64_t pp = std::array{2, 3, 4, 6, 8}[random() % 5];
    const auto vpp = static_cast<std::int64_t>(2 + random() % 3);
    Problem p = tests::problem(Runtime::megatron, "llama3-8b",
                               {.pp = pp, .vpp = vpp, .schedule = Schedule::interleaved});
    p.training.global_batch = pp * static_cast<std::int64_t>(4 + random() % 8);
    const double backward = between(1.5, 4);  // of a forward pass
    const double embedding = between(0, 0.2);
    const double head = between(0, 1);
    const double at_ends = random() % 3 == 0 ? between(0.5, 1) : 1;  // part of the layers
    const double message = between(0, 1);
    std::vector<PassTime> passes(static_cast<std::size_t>(pp * vpp), {1, backward, 0});
    passes.front() = {at_ends + embedding, at_ends * backward + embedding, 0};
    passes.back() = {at_ends + head, at_ends * backward + 2 * head, 0};
    const Rounds rounds = rounds_of(p);
    if (rounds.more == 0) continue;
    const auto pace = pace_of<double>(p, rounds, passes, static_cast<std::size_t>(vpp), message);
    if (!pace.all_known()) continue;
    ++known;
    CAPTURE(pp, vpp, p.training.global_batch, message, embedding, head, at_ends);
    std::vector<double> few, more;
    OrderedPasses(pipeline_of(p, rounds.few)).finish(passes, message, few);
    OrderedPasses(pipeline_of(p, rounds.more)).finish(passes, message, more);
    for (std::size_t rank = 0; rank < few.size(); ++rank) {
      REQUIRE(continued(few[rank], more[rank], pace.round, rounds) ==
              Approx(few[rank] + rounds.left * pace.round).epsilon(1e-9));
    }
  }
  REQUIRE(known > all / 3);
}
