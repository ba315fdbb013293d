#include "cost_model/rank/recomputed.hpp"

#include "cost_model/runtime/fsdp2/rank.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

// Time counts layers, memory wraps them one by one.
TEST_CASE("as many layers are recomputed as memory wraps") {
  const std::string_view model = GENERATE("llama3-8b", "deepseek-v2-lite");
  const std::int64_t pp = GENERATE(1, 2, 3);
  const std::int64_t vpp = GENERATE(1, 2);
  if (pp == 1 && vpp > 1) return;
  const std::int64_t every = GENERATE(0, 1, 2, 3, 5);
  const Recompute recompute = GENERATE(Recompute::none, Recompute::selective, Recompute::full);
  Problem p = tests::problem(Runtime::fsdp2, model,
                             {.dp = 2, .pp = pp, .vpp = vpp, .recompute = recompute});
  p.runtime.fsdp2.selective_ac_layers = every;
  const std::int64_t first = GENERATE(0, 2);
  if (recompute == Recompute::full || every == 0) p.runtime.fsdp2.recompute_num_layers = first;
  CAPTURE(model, pp, vpp, every, first);
  const WeightInventory inventory = weight_inventory(p.model);
  const Fsdp2Units units = fsdp2_units(p, inventory);
  const Fsdp2Rank rank(p, inventory, units);
  for (const Stage& stage : stages(p)) {
    std::int64_t of_stage[2] = {};
    for (const LayerRange& chunk : stage.chunks) {
      std::int64_t wrapped[2] = {};
      for (const Fsdp2Link& link : rank.links(chunk, false, false)) {
        if (link.checkpoint != Checkpoint::none)
          wrapped[link.layer == LayerKind::moe] += link.count;
      }
      for (const LayerKind kind : {LayerKind::dense, LayerKind::moe}) {
        const bool moe = kind == LayerKind::moe;
        const std::int64_t count = layers_of_kind(p.model, chunk.first, chunk.last, kind);
        REQUIRE(recomputed_layers(p, chunk, kind, count) == wrapped[moe]);
        of_stage[moe] += wrapped[moe];
      }
    }
    REQUIRE(recomputed_layers(p, stage, LayerKind::dense) == of_stage[0]);
    REQUIRE(recomputed_layers(p, stage, LayerKind::moe) == of_stage[1]);
  }
}
