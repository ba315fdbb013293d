// play = run: what a rank allocated and sent is what the cost model says, byte for byte.
#include "validator/prediction.hpp"

#include "cost_model/answer/estimate.hpp"
#include "cost_model/legality/legality.hpp"
#include "tests/catch.hpp"
#include "tests/validator/tiny.hpp"

using namespace zeroplan;
using namespace zeroplan::engine;

namespace {

std::map<std::string_view, Traffic> by_group(const std::vector<GroupTraffic>& list) {
  std::map<std::string_view, Traffic> groups;
  for (const GroupTraffic& g : list) {
    if (!g.traffic.empty()) groups[g.group] = g.traffic;
  }
  return groups;
}

void require_predicted(const RankReport& rank, const Problem& p, const Evaluator& evaluator) {
  CAPTURE(rank.place.pp, rank.place.dp, rank.place.tp);
  const RankPrediction predicted = predicted_rank(p, evaluator, rank.place.pp);
  for (std::size_t i = 0; i < names<Category>().size(); ++i) {
    const auto category = static_cast<Category>(i);
    CAPTURE(name_of(category));
    REQUIRE(rank.peak.live[category].count() == predicted.peak.live[category].count());
  }
  REQUIRE(name_of(rank.peak.phase) == name_of(predicted.peak.phase));
  REQUIRE(rank.peak.tensor == predicted.peak.tensor);
  REQUIRE(by_group(rank.traffic) == by_group(predicted.traffic));
}

void require_run_as_predicted(const Problem& p) {
  REQUIRE_FALSE(first_violation(p));
  const Evaluator evaluator(p);
  RunOptions options;
  options.steps = 2;
  for (const RankReport& rank : run_on_host(p, options).ranks) {
    require_predicted(rank, p, evaluator);
  }
}

}  // namespace

TEST_CASE("a run allocates and sends what is predicted, byte for byte") {
  const bool gpt = GENERATE(false, true);
  const std::int64_t pp = GENERATE(1, 2, 3);
  const auto [tp, split] = GENERATE(std::pair{1, false}, std::pair{2, false}, std::pair{2, true});
  const int zero = GENERATE(0, 1, 2, 3);
  const Layout layout{.dp = gpt ? 3 : 2,
                      .tp = tp,
                      .pp = pp,
                      .micro_batch = 1 + zero % 2,
                      .zero = static_cast<ZeroStage>(zero),
                      .sequence_parallel = split,
                      .schedule = gpt && pp > 1 ? Schedule::gpipe : Schedule::one_f_one_b,
                      .recompute = pp == 2 ? Recompute::full : Recompute::none};
  const Problem p =
      tests::tiny_problem(gpt ? tests::tiny_gpt() : tests::tiny_llama(), layout, pp + 1);
  CAPTURE(p.model.name, tp, split, pp, zero);
  require_run_as_predicted(p);
}

TEST_CASE("and with every setting of the engine") {
  const int zero = GENERATE(0, 1, 2, 3);
  const Recompute recompute = GENERATE(Recompute::none, Recompute::full);
  const bool split = GENERATE(false, true);
  for (const ZeroplanSettings& set : tests::engine_settings(recompute, split)) {
    // Both styles and depths in turn, each setting with each of them under some stage.
    const bool gpt = (zero + set.prefetch) % 2 == 0;
    const std::int64_t pp = 1 + zero / 2;
    const Layout layout{.dp = gpt ? 3 : 2,
                        .tp = 2,
                        .pp = pp,
                        .micro_batch = 2,
                        .zero = static_cast<ZeroStage>(zero),
                        .sequence_parallel = split,
                        .recompute = recompute};
    Problem p = tests::tiny_problem(gpt ? tests::tiny_gpt() : tests::tiny_llama(), layout, 3);
    p.runtime.zeroplan = set;
    CAPTURE(p.model.name, pp, zero, name_of(recompute), split, set.prefetch,
            set.partition_activations, set.reduce_bucket_size, set.contiguous_memory_optimization,
            set.overlap_comm);
    require_run_as_predicted(p);
  }
}

TEST_CASE("and where the head is tied to the embedding, on its stage or another") {
  const int zero = GENERATE(0, 1, 2, 3);
  const std::int64_t pp = GENERATE(1, 2, 3);
  std::vector<ZeroplanSettings> settings = tests::engine_settings(Recompute::none);
  settings.push_back({});
  for (const ZeroplanSettings& set : settings) {
    const bool gpt = (zero + set.contiguous_memory_optimization) % 2 == 0;
    const Layout layout{.dp = gpt ? 3 : 2,
                        .tp = 2,
                        .pp = pp,
                        .zero = static_cast<ZeroStage>(zero),
                        .sequence_parallel = set.prefetch};
    Problem p = tests::tiny_problem(tests::tied(gpt ? tests::tiny_gpt() : tests::tiny_llama()),
                                    layout, pp + 1);
    p.runtime.zeroplan = set;
    CAPTURE(p.model.name, pp, zero, set.prefetch, set.reduce_bucket_size,
            set.contiguous_memory_optimization, set.overlap_comm);
    require_run_as_predicted(p);
  }
}

TEST_CASE("gradients and parameters travel as the ZeRO paper counts them") {
  for (int zero = 0; zero < 4; ++zero) {
    const std::int64_t n = 4;
    Layout layout{.dp = n, .zero = static_cast<ZeroStage>(zero)};
    const Problem p = tests::tiny_problem(tests::tiny_llama(), layout);
    RunOptions options;
    options.steps = 1;
    const RankReport rank = run_on_host(p, options).ranks.front();
    std::int64_t kept = 0;  // Psi, padded: what all ranks own
    for (const auto& part : rank.own_parameters) kept += n * static_cast<std::int64_t>(part.size());
    std::int64_t sent = 0;
    for (const GroupTraffic& group : rank.traffic) {
      for (const auto& [what, calls] : group.traffic) {
        sent += calls * sent_bytes_per_rank(what.first, n, Bytes{what.second}).count();
      }
    }
    REQUIRE(sent == (zero == 3 ? 3 : 2) * 2 * kept * (n - 1) / n);
  }
}

TEST_CASE("one of 1,024 ranks counts what the planner says, at full size") {
  const int zero = GENERATE(0, 1, 2, 3);
  const auto [tp, pp] = GENERATE(std::pair<std::int64_t, std::int64_t>{1, 1}, std::pair{8, 1},
                                 std::pair{1, 8}, std::pair{8, 4}, std::pair{2, 16});
  const bool set = GENERATE(false, true);
  const bool split = tp > 1 && zero % 2 == 1;
  Layout layout{.dp = 1024 / (tp * pp), .tp = tp, .pp = pp, .zero = static_cast<ZeroStage>(zero)};
  layout.sequence_parallel = split;
  if (set) layout.recompute = Recompute::full;
  Problem p = tests::problem(Runtime::zeroplan, "llama3-70b", layout);
  p.model.tied_embeddings = zero % 2 == 0;
  p.training.global_batch = layout.dp * 2 * pp;
  if (set) p.runtime.zeroplan = {true, !split, 50'000'000, true};
  CAPTURE(tp, pp, zero, set, split);
  REQUIRE(world_size(p.layout) == 1024);
  REQUIRE_FALSE(first_violation(p));
  const Evaluator evaluator(p);
  const Estimate planned = estimate(p, evaluator);
  for (std::int64_t stage = 0; stage < layout.pp; ++stage) {
    const RankReport rank = count_rank(p, {.tp = tp - 1, .dp = layout.dp - 1, .pp = stage});
    require_predicted(rank, p, evaluator);
    MemoryBreakdown said = planned.stages[static_cast<std::size_t>(stage)].memory;
    for (const Category outside :
         {Category::fragmentation, Category::communicators, Category::context}) {
      said[outside] = {};
    }
    REQUIRE(rank.peak.live == said);
  }
}
