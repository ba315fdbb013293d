// nanotron scatters in memory what it sends: a whole step of random problems.
#include "tests/cost_model/program/traffic.hpp"

#include <random>

#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;
using namespace zeroplan::tests;

namespace {

std::optional<Problem> draw_divided(Draw& draw) {
  std::optional<Problem> p = draw.problem({6});
  if (!p || p->layout.tp < 2) return {};
  p->layout.sequence_parallel = true;
  if (first_violation(*p)) return {};
  return p;
}

}  // namespace

TEST_CASE("nanotron makes a tensor for each sum that it scatters, and gathers into a buffer") {
  std::mt19937 random(20261124);
  Draw draw(random);
  const int enough = draws(60);
  int seen = 0;
  for (int i = 0; i < 60'000 && seen < enough; ++i) {
    const std::optional<Problem> p = draw_divided(draw);
    if (!p) continue;
    ++seen;
    const Evaluator evaluator(*p);
    const std::vector<Stage> all = stages(*p);
    for (std::size_t stage = 0; stage < all.size(); ++stage) {
      CAPTURE(p->model.name, p->layout.tp, p->layout.pp, stage, name_of(p->layout.recompute));
      const std::vector<Played> record = played_step(*p, evaluator, stage);
      const std::vector<CollectiveLoad> loads =
          step_collectives(*p, evaluator.weights(), all[stage]);
      REQUIRE(allocated(record, {"output before reduction", "input gradient of the linear",
                                 "embedding before scatter"}) ==
              sent(loads, {"tp"}, Collective::reduce_scatter));
      // Two linears and their gradients gather four times, and twice more for the weights, where
      // these inputs were not kept; with recompute the inputs once more.
      const bool again = p->runtime.nanotron.tp_recompute_allgather;
      const std::int64_t gathers = 4 + 2 * again + 2 * (p->layout.recompute == Recompute::full);
      const std::int64_t ends = (1 + again) * all[stage].head + all[stage].embedding;
      REQUIRE(sent(loads, {"tp"}, Collective::all_gather).count ==
              forward_passes(*p) * (gathers * layer_count(all[stage]) + ends));
    }
  }
  REQUIRE(seen == enough);
}
