#include "cost_model/pipeline/rounds.hpp"

#include <random>

#include "cost_model/pipeline/pipeline_clock.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

double between(std::mt19937& random, double a, double b) {
  return std::uniform_real_distribution<>(a, b)(random);
}

// With 4 rounds or more, less than 4 + `further`.
Problem interleaved(std::mt19937& random, unsigned further) {
  const std::int64_t pp = std::array{2, 3, 4, 6, 8}[random() % 5];
  const auto vpp = static_cast<std::int64_t>(2 + random() % 3);
  Problem p = tests::problem(Runtime::megatron, "llama3-8b",
                             {.pp = pp, .vpp = vpp, .schedule = Schedule::interleaved});
  p.training.global_batch = pp * static_cast<std::int64_t>(4 + random() % further);
  return p;
}

}  // namespace

// Equal layers, but for what embedding and head add and for fewer of them beside these.
TEST_CASE("a pace that is known is what a round more takes, in pipelines like real ones") {
  std::mt19937 random(5);
  int known = 0;
  constexpr int all = 300;
  for (int i = 0; i < all; ++i) {
    const Problem p = interleaved(random, 8);
    const auto [pp, vpp] = std::pair(p.layout.pp, p.layout.vpp);
    const double backward = between(random, 1.5, 4);  // of a forward pass
    const double embedding = between(random, 0, 0.2);
    const double head = between(random, 0, 1);
    // Part of the layers; none where embedding and loss have a chunk for themselves.
    const double at_ends = std::array{1.0, 1.0, between(random, 0.5, 1), 0.0}[random() % 4];
    const double message = between(random, 0, 1);
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

// One rank has more layers in each of its chunks than any other, as the first or the last one may
// where the others are left whole. In two rounds a chain through other ranks may be longer.
TEST_CASE("a rank that is the slowest on each of its chunks decides how a long step goes on") {
  std::mt19937 random(7);
  PipelineClock clock;
  int ends = 0, exact = 0;
  for (int i = 0; i < 400; ++i) {
    const Problem p = interleaved(random, 12);
    const auto [pp, vpp] = std::pair(p.layout.pp, p.layout.vpp);
    const double backward = between(random, 1.5, 3);  // of a forward pass
    const double slow = between(random, 1.02, 1.3);
    const auto slowest = static_cast<std::size_t>(random()) % static_cast<std::size_t>(pp);
    const double embedding = between(random, 0, slow - 1);
    const double head = between(random, 0, (slow - 1) / 2);
    const double message = between(random, 0, 0.1);
    const auto chunks = static_cast<std::size_t>(vpp);
    std::vector<PassTime> passes(static_cast<std::size_t>(pp) * chunks, {1, backward, 0});
    passes.front().forward += embedding;
    passes.back() = {1 + head, backward + 2 * head, 0};
    for (std::size_t c = 0; c < chunks; ++c) {
      passes[slowest * chunks + c] = {slow, slow * backward, 0};
    }
    const Rounds rounds = rounds_of(p);
    if (rounds.more == 0) continue;
    const auto pace = pace_of<double>(p, rounds, passes, chunks, message);
    if (!pace.known[0]) continue;
    REQUIRE(pace.in_step[0] == slowest);
    CAPTURE(pp, vpp, p.training.global_batch, slowest, slow, backward, embedding, head, message);
    std::vector<double> all;
    OrderedPasses(pipeline_of(p, micro_batches(p))).finish(passes, message, all);
    const std::vector<std::int64_t> each(static_cast<std::size_t>(pp), 1);
    const std::vector<double> finished =
        clock.finished(p, PassesOfRanks<double>{each, passes}, message);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      REQUIRE(finished[rank] == Approx(all[rank]).epsilon(continued_error(p)));
      exact += finished[rank] == Approx(all[rank]).epsilon(1e-9);
      ++ends;
    }
  }
  REQUIRE(ends > 500);
  REQUIRE(exact > 0.98 * ends);
}

// Such a chunk takes but the embedding's or the head's own time.
TEST_CASE("a long step goes on as its passes do where the ends of the model hold no layer") {
  std::mt19937 random(11);
  PipelineClock clock;
  for (int i = 0; i < 200; ++i) {
    const Problem p = interleaved(random, 12);
    const auto [pp, vpp] = std::pair(p.layout.pp, p.layout.vpp);
    const double backward = between(random, 1.5, 3);  // of a forward pass
    const double embedding = between(random, 0.001, 0.2);
    const double head = between(random, 0.1, 3);
    const double message = between(random, 0, 0.1);
    std::vector<PassTime> passes(static_cast<std::size_t>(pp * vpp), {1, backward, 0});
    passes.front() = {embedding, embedding, 0};
    passes.back() = {head, 2 * head, 0};
    CAPTURE(pp, vpp, p.training.global_batch, backward, embedding, head, message);
    std::vector<double> all;
    OrderedPasses(pipeline_of(p, micro_batches(p))).finish(passes, message, all);
    const std::vector<std::int64_t> each(static_cast<std::size_t>(pp), 1);
    const std::vector<double> finished =
        clock.finished(p, PassesOfRanks<double>{each, passes}, message);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      REQUIRE(finished[rank] == Approx(all[rank]).epsilon(continued_error(p) + 1e-9));
    }
  }
}
