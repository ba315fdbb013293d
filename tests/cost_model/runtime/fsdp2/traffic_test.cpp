// FSDP2 gathers and reduces in memory what it sends: over a whole step of random problems.
#include "tests/cost_model/program/traffic.hpp"

#include <random>

#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;
using namespace zeroplan::tests;

namespace {

// Today's code, tied embeddings, replicas of shards and GPipe more often than they are drawn.
std::optional<Problem> draw_fsdp2(Draw& draw) {
  std::optional<Problem> p = draw.problem({1});
  if (!p) return p;
  if (draw.coin()) p->runtime.fsdp2.recipe_date = 20260821;
  if (draw.coin() && p->layout.pp == 1) p->model = find_model("llama3.2-1b").spec;
  if (draw.coin() && p->layout.pp == 1) p->runtime.fsdp2.layers = LayerCode::huggingface;
  p->layout.hsdp = draw.pick({0, 0, 2});
  p->training.global_batch *= draw.pick({1, 1, 3});
  if (p->layout.schedule == Schedule::one_f_one_b && p->layout.pp > 1 && draw.coin()) {
    p->layout.schedule = Schedule::gpipe;
  }
  if (first_violation(*p)) return {};
  const ShardWidths widths = shard_widths(*p);
  if (widths.dense < 2 || (p->model.moe && widths.expert < 2)) return {};
  return p;
}

bool gathers_logits(const Problem& p) {
  return !p.runtime.fsdp2.loss_parallel || p.runtime.fsdp2.layers == LayerCode::huggingface;
}

void require_as_sent(const Problem& p) {
  const Evaluator evaluator(p);
  const std::vector<Stage> all = stages(p);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(p.model.name, p.layout.dp, p.layout.tp, p.layout.pp, p.layout.vpp, p.layout.cp,
            p.layout.ep, p.layout.hsdp, p.runtime.fsdp2.recipe_date, p.runtime.fsdp2.loss_chunks, i,
            micro_batches(p), name_of(p.layout.zero), name_of(p.layout.schedule),
            name_of(p.runtime.fsdp2.reshard_after_forward), name_of(p.training.precision));
    const std::vector<Played> record = played_step(p, evaluator, i);
    const std::vector<CollectiveLoad> loads = step_collectives(p, evaluator.weights(), all[i]);
    const auto require = [&](std::string_view name, Collective what) {
      CAPTURE(name);
      const Names groups{"dp", "shard", "expert-dp"};
      const Sum made = allocated(record, {name});
      if (p.model.moe) {
        // One tensor a unit, but a call for its experts and one for the rest: each tensor is
        // rounded up by less than a unit of the allocator.
        const Bytes exact = sent(loads, groups, what, 1).bytes;
        REQUIRE(made.bytes >= exact);
        REQUIRE(made.bytes < exact + made.count * Bytes{allocation_unit});
      } else {
        REQUIRE(made == sent(loads, groups, what));
      }
    };
    require("all-gather output", Collective::all_gather);
    require("reduce-scatter input", Collective::reduce_scatter);
    if (!p.layout.sequence_parallel || gathers_logits(p)) continue;
    REQUIRE(allocated(record, {"gathered norm output", "gathered output gradient",
                               "gathered embedding gradient"}) ==
            sent(loads, {"tp"}, Collective::all_gather));
  }
}

}  // namespace

TEST_CASE("FSDP2 gathers and reduces in memory what it sends, to the byte and the call") {
  std::mt19937 random(20261123);
  Draw draw(random);
  const int enough = draws(400);
  int seen = 0;
  for (int i = 0; i < 60'000 && seen < enough; ++i) {
    const std::optional<Problem> p = draw_fsdp2(draw);
    if (!p) continue;
    ++seen;
    require_as_sent(*p);
  }
  REQUIRE(seen == enough);
}

// torchtitan #4182: 17 reductions of the last of 16 stages in 16 micro-batches. Each loss gathers
// the output layer, which its root's hook resharded, and each backward pass does, which it left
// resharded; the first forward pass found nothing.
TEST_CASE("a pipeline's loss in parts gathers and reduces the output layer each time") {
  Problem p = problem(Runtime::fsdp2, "llama3-8b",
                      {.dp = 8, .pp = 4, .zero = ZeroStage::parameters}, "H100-80GB");
  p.layout.schedule = GENERATE(Schedule::one_f_one_b, Schedule::gpipe);
  p.training.global_batch = p.layout.dp * 16;
  const std::vector<Played> last = played_step(p, Evaluator(p), 3);
  const std::int64_t layers = layer_count(stages(p)[3]);
  CHECK(allocated(last, {"reduce-scatter input"}).count == 17 + layers);
  CHECK(allocated(last, {"all-gather output"}).count == 2 * 16 + 1 + layers);
}
