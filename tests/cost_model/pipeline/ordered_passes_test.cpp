#include "cost_model/pipeline/ordered_passes.hpp"

#include <random>

#include "cost_model/answer/step_time.hpp"
#include "cost_model/legality/legality.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

// The clock takes a closed form, or runs a few rounds and continues them; the graph runs all. Of
// chunks whose times differ by up to a hundred, as here, a few have not found their pace by then.
TEST_CASE("passes run in order end when those of the graph do") {
  std::mt19937 random(2);
  const auto seconds = [&] { return 1e-3 * static_cast<double>(1 + random() % 100); };
  PipelineClock clock;
  int exact = 0, compared = 0;
  for (int i = 0; i < 200; ++i) {
    const auto pp = static_cast<std::int64_t>(1 + random() % 6);
    const auto vpp = static_cast<std::int64_t>(pp > 1 ? 1 + random() % 3 : 1);
    const auto rounds = static_cast<std::int64_t>(1 + random() % 9);
    Problem p = tests::problem(Runtime::megatron, "llama3-8b", {.pp = pp, .vpp = vpp});
    p.layout.schedule = vpp > 1            ? Schedule::interleaved
                        : random() % 3 > 0 ? Schedule::one_f_one_b
                                           : Schedule::gpipe;
    p.training.global_batch =
        vpp > 1 ? rounds * pp : rounds * pp + static_cast<std::int64_t>(random() % 3);
    std::vector<StageTime> ranks(static_cast<std::size_t>(pp));
    for (StageTime& rank : ranks) {
      for (std::int64_t c = 0; c < vpp; ++c)
        rank.chunks.push_back({seconds(), seconds(), seconds()});
    }
    const double message = random() % 2 == 0 ? 0 : 0.1 * seconds();
    CAPTURE(pp, vpp, p.training.global_batch, name_of(p.layout.schedule));
    const auto all = timed_passes(p, ranks, message, micro_batches(p));
    PassesOfRanks<double> passes;
    for (const StageTime& rank : ranks) {
      passes.ranks.push_back(1);
      passes.passes.insert(passes.passes.end(), rank.chunks.begin(), rank.chunks.end());
    }
    const std::vector<double> finished = clock.finished(p, passes, message);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      const double end = all[r].back().end;
      const bool continued =
          p.layout.schedule != Schedule::one_f_one_b && micro_batches(p) > 3 * pp;
      REQUIRE(finished[r] == Approx(end).epsilon(continued ? 0.04 : 1e-12));
      exact += finished[r] == Approx(end).epsilon(1e-12);
      ++compared;
    }
  }
  REQUIRE(exact > 0.9 * compared);
}

// A search times eight points at once, whose slowest ranks may differ.
TEST_CASE("passes timed side by side end as each timing does alone") {
  std::mt19937 random(4);
  const auto seconds = [&] { return 1e-3 * static_cast<double>(1 + random() % 100); };
  for (int i = 0; i < 100; ++i) {
    const auto ranks = static_cast<std::size_t>(2 + random() % 5);
    const auto chunks = static_cast<std::size_t>(1 + random() % 3);
    const OrderedPasses order(
        {.schedule = chunks > 1 ? Schedule::interleaved : Schedule::one_f_one_b,
         .ranks = static_cast<std::int64_t>(ranks),
         .chunks = static_cast<std::int64_t>(chunks),
         .micro_batches = static_cast<std::int64_t>(2 * ranks),
         .interleaving = {.group = static_cast<std::int64_t>(ranks)}});
    std::vector<PassTimeOf<Lanes>> passes(ranks * chunks);
    OrderedPasses::RankOfEach<Lanes> through;
    for (auto& rank : through) {
      if (random() % 4 > 0) rank = random() % ranks;
    }
    for (auto& pass : passes) {
      for (std::size_t k = 0; k < Lanes::count; ++k) {
        pass.forward.each[k] = seconds();
        pass.input_gradient.each[k] = seconds();
      }
    }
    const double message = 0.1 * seconds();
    std::vector<Lanes> finished, chains;
    order.finish(passes, message, through, finished, chains);
    for (std::size_t k = 0; k < Lanes::count; ++k) {
      std::vector<PassTime> own;
      for (const auto& pass : passes)
        own.push_back({pass.forward.each[k], pass.input_gradient.each[k]});
      std::vector<double> own_finished, own_chains;
      order.finish(own, message, {through[k]}, own_finished, own_chains);
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        REQUIRE(finished[rank].each[k] == own_finished[rank]);
        if (!through[k]) continue;
        REQUIRE(chains[rank].each[k] == own_chains[rank]);
        REQUIRE(own_chains[rank] <= own_finished[rank]);
      }
    }
  }
}

// Whatever the number of micro-batches, no rank waits for itself.
TEST_CASE("every legal schedule ends") {
  int tried = 0;
  for (const Runtime runtime : {Runtime::megatron, Runtime::fsdp2, Runtime::zero_paper}) {
    for (std::size_t s = 0; s < names<Schedule>().size(); ++s) {
      for (const std::int64_t pp : {2, 4}) {
        for (std::int64_t m = 1; m <= 4 * pp + 3; ++m) {
          const auto schedule = static_cast<Schedule>(s);
          const bool chunked = schedule == Schedule::interleaved || schedule == Schedule::zb_v;
          Problem p = tests::problem(runtime, "llama3-8b",
                                     {.pp = pp,
                                      .vpp = chunked ? 2 : 1,
                                      .zero = ZeroStage::parameters,
                                      .schedule = schedule});
          p.training.global_batch = m;
          if (first_violation(p)) continue;
          ++tried;
          CAPTURE(name_of(runtime), name_of(schedule), pp, m);
          const Evaluator evaluator(p);
          REQUIRE(step_time(p, evaluator).seconds == step_seconds(p, evaluator));
          REQUIRE(step_seconds(p, evaluator) > 0);
        }
      }
    }
  }
  REQUIRE(tried > 150);
}
