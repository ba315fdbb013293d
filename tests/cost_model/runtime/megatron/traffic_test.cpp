// Megatron-Core's sequence parallelism gathers and reduces in memory what it sends: a whole step of
// random problems.
#include "tests/cost_model/program/traffic.hpp"

#include <random>

#include "cost_model/runtime/megatron/shape.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;
using namespace zeroplan::tests;

namespace {

std::optional<Problem> draw_divided(Draw& draw) {
  std::optional<Problem> p = draw.problem({0});
  if (!p || p->layout.tp < 2) return {};
  p->layout.sequence_parallel = true;
  p->runtime.megatron.mtp_num_layers = 0;
  if (draw.coin()) p->model = find_model("deepseek-v2-lite").spec;
  if (first_violation(*p)) return {};
  return p;
}

void require_as_sent(const Problem& p) {
  const Evaluator evaluator(p);
  const std::vector<Stage> all = stages(p);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(p.model.name, p.layout.tp, p.layout.pp, p.layout.vpp, p.layout.ep, i, micro_batches(p),
            name_of(p.layout.recompute), p.runtime.megatron.recompute_modules,
            p.layout.recompute_modules, p.layout.micro_batch, name_of(p.layout.schedule));
    const std::vector<Played> record = played_step(p, evaluator, i);
    const std::vector<CollectiveLoad> loads = step_collectives(p, evaluator.weights(), all[i]);
    Sum gathered = allocated(record, {"gathered linear input", "gathered output gradient",
                                      "gathered embedding gradient", "mixed qkv by rank"});
    if (all[i].head) {
      // The head's input is gathered twice into a buffer that stays.
      const std::int64_t times = 2 * forward_passes(p);
      gathered.count += times;
      gathered.bytes +=
          times * Bytes{round_up(megatron_shape(p).gathered().count(), allocation_unit)};
    }
    REQUIRE(gathered == sent(loads, {"tp"}, Collective::all_gather));
    REQUIRE(allocated(record, {"output before reduction", "embedding before scatter",
                               "input gradient of the linear", "gradient of the rotary part",
                               "input gradient of the head", "mixed qkv gradient by rank"}) ==
            sent(loads, {"tp"}, Collective::reduce_scatter));
  }
}

}  // namespace

TEST_CASE("sequence parallelism gathers and reduces in memory what it sends, to the byte") {
  std::mt19937 random(20261123);
  Draw draw(random);
  const int enough = draws(200);
  int seen = 0;
  for (int i = 0; i < 60'000 && seen < enough; ++i) {
    const std::optional<Problem> p = draw_divided(draw);
    if (!p) continue;
    ++seen;
    require_as_sent(*p);
  }
  REQUIRE(seen == enough);
}

// Megatron-Core core/transformer/multi_latent_attention.py: each rank's rows of what the
// down-projections make, and of the input of the queries, normalised once more where they have no
// latent of their own. Transformer Engine run under fake tensors had 4 x 16 MiB of the latter in
// four layers.
TEST_CASE("latents are divided over the tokens, and queries without one keep their normed input") {
  Problem p = problem(Runtime::megatron, "deepseek-v2-lite",
                      {.dp = 1, .tp = 2, .sequence_parallel = true}, "H100-80GB");
  REQUIRE_FALSE(first_violation(p));
  const std::vector<Played> record = played_step(p, Evaluator(p), 0);
  const std::int64_t rows = p.training.sequence_length / 2;
  const std::int64_t layers = p.model.layers;
  CHECK(allocated(record, {"normalised key-value latent"}) ==
        Sum{layers, Bytes{layers * 2 * rows * 512}});
  CHECK(allocated(record, {"normalised query latent"}) ==
        Sum{layers, Bytes{layers * 2 * rows * 2048}});
}
