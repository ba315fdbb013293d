// zeroplan's engine gathers and reduces in memory what it sends: a whole step of random problems.
#include "tests/cost_model/program/traffic.hpp"

#include <random>

#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;
using namespace zeroplan::tests;

namespace {

std::optional<Problem> draw_engine(Draw& draw) {
  std::optional<Problem> p = draw.problem({5});
  if (!p || p->layout.dp < 2) return {};
  ZeroplanSettings& set = p->runtime.zeroplan;
  set.prefetch = draw.coin();
  set.partition_activations = draw.coin();
  set.reduce_bucket_size = draw.pick({0, 0, 1'000'000});
  set.contiguous_memory_optimization = draw.pick({0, 0, 1}) == 1;
  if (first_violation(*p)) return {};
  return p;
}

void require_as_sent(const Problem& p) {
  const ZeroplanSettings& set = p.runtime.zeroplan;
  const Evaluator evaluator(p);
  const std::vector<Stage> all = stages(p);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(p.model.name, p.layout.dp, p.layout.tp, p.layout.pp, i, micro_batches(p),
            name_of(p.layout.zero), p.layout.sequence_parallel, set.prefetch,
            set.partition_activations, set.reduce_bucket_size, set.contiguous_memory_optimization);
    const std::vector<Played> record = played_step(p, evaluator, i);
    const std::vector<CollectiveLoad> loads = step_collectives(p, evaluator.weights(), all[i]);
    const Sum gathered = allocated(record, {"gathered parameters"});
    if (p.layout.zero == ZeroStage::parameters) {
      // A constant bucket (CB) is what a call carries, not what is gathered.
      REQUIRE(gathered.bytes == sent(loads, {"dp"}, Collective::all_gather).bytes);
      if (!set.constant_buffers()) {
        REQUIRE(gathered.count == sent(loads, {"dp"}, Collective::all_gather).count);
      }
    } else {
      REQUIRE(gathered.count == 0);  // updated in place, once a step
    }
    // Constant ones (CB, MD) are resident.
    if (!set.constant_buffers() && !set.contiguous_memory_optimization &&
        p.layout.zero >= ZeroStage::gradients) {
      REQUIRE(allocated(record, {"bucket of gradients"}) ==
              sent(loads, {"dp"}, Collective::reduce_scatter));
    }
    REQUIRE(allocated(record,
                      {"rebuilt checkpoint", "gathered norm output", "gathered output gradient"}) ==
            sent(loads, {"tp"}, Collective::all_gather));
    REQUIRE(allocated(record, {"part of a sum"}) ==
            sent(loads, {"tp"}, Collective::reduce_scatter));
  }
}

}  // namespace

TEST_CASE("zeroplan's engine gathers and reduces in memory what it sends, to the byte") {
  std::mt19937 random(20261123);
  Draw draw(random);
  const int enough = draws(60);
  int seen = 0;
  for (int i = 0; i < 1'000'000 && seen < enough; ++i) {
    const std::optional<Problem> p = draw_engine(draw);
    if (!p) continue;
    ++seen;
    require_as_sent(*p);
  }
  REQUIRE(seen == enough);
}
