#include "cost_model/runtime/zeroplan/stage.hpp"

#include <random>

#include "cost_model/program/play.hpp"
#include "cost_model/remember/evaluator.hpp"
#include "tests/catch.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;

namespace {

// A random legal problem of the engine; tests::Draw would hardly ever find one.
std::optional<Problem> drawn(std::mt19937& random) {
  tests::Draw draw(random);
  const Layout layout{.dp = draw.pick({1, 2, 3, 8}),
                      .tp = draw.pick({1, 2, 4, 8}),
                      .pp = draw.pick({1, 2, 4, 5}),
                      .micro_batch = draw.pick({1, 2}),
                      .zero = static_cast<ZeroStage>(draw.pick({0, 1, 2, 3})),
                      .schedule = static_cast<Schedule>(draw.pick({0, 1})),
                      .recompute = static_cast<Recompute>(draw.pick({0, 2}))};
  Problem p = tests::problem(Runtime::zeroplan, draw.coin() ? "llama3-8b" : "llama3-70b", layout);
  p.runtime.zeroplan = {.prefetch = draw.coin(),
                        .partition_activations = layout.recompute == Recompute::full && draw.coin(),
                        .reduce_bucket_size = draw.pick({0, 0, 1'000'000, 500'000'000}),
                        .contiguous_memory_optimization = draw.coin()};
  p.training.global_batch = layout.dp * layout.micro_batch * draw.pick({1, 2, 3, 7});
  if (first_violation(p)) return std::nullopt;
  return p;
}

}  // namespace

TEST_CASE("fold = play for zeroplan's own engine") {
  std::mt19937 random(20261121);
  int played = 0;
  for (int i = 0; i < 400; ++i) {
    const std::optional<Problem> p = drawn(random);
    if (!p) continue;
    const Evaluator evaluator(*p);
    const auto all = stages(*p);
    for (std::int64_t rank = 0; rank < p->layout.pp; ++rank) {
      CAPTURE(p->model.name, p->layout.tp, p->layout.pp, rank, micro_batches(*p),
              name_of(p->layout.recompute), name_of(p->layout.zero));
      const StageProgram program = evaluator.stage_program(*p, all[static_cast<std::size_t>(rank)]);
      const auto whole = passes(*p, rank, micro_batches(*p));
      const Playback step = play_step(program, whole);
      REQUIRE(fold_step(program, whole).live == step.peak.live);
      REQUIRE(fold_step(program, representative_passes(*p, rank)).live == step.peak.live);
      REQUIRE(step.left == sum(program.resident));
      ++played;
    }
  }
  REQUIRE(played > 300);
}

TEST_CASE("the loss of zeroplan's engine reduces three fp32 values a token") {
  const Problem p = tests::problem(Runtime::zeroplan, "llama3-8b", {.dp = 2, .tp = 2});
  const Block head =
      zeroplan_block(p, weight_inventory(p.model), BlockKind::head, LayerKind::dense, 0);
  for (const std::string_view name :
       {"largest logit", "sum of exponentials", "logit of the target"}) {
    const auto at = std::ranges::find(head.tensors, name, &TensorSpec::name);
    CAPTURE(name);
    REQUIRE(at != head.tensors.end());
    CHECK(at->bytes == Bytes{4 * 4'096});
  }
}

TEST_CASE("zeroplan's states are the 2 + 2 + 12 bytes of the ZeRO paper, divided by stage") {
  Layout layout{.dp = 8};
  const std::int64_t psi = 8'030'261'248;
  const auto states = [&](ZeroStage zero) {
    layout.zero = zero;
    const Problem p = tests::problem(Runtime::zeroplan, "llama3-8b", layout);
    const Evaluator evaluator(p);
    return static_cast<double>(
        model_states(p, evaluator.weights(), stages(p).front()).total().count());
  };
  const auto near = [&](double bytes) {
    return Approx(bytes * static_cast<double>(psi)).epsilon(1e-5);
  };
  REQUIRE(states(ZeroStage::none) == near(16));
  REQUIRE(states(ZeroStage::optimizer) == near(4 + 12.0 / 8));
  REQUIRE(states(ZeroStage::gradients) == near(2 + 14.0 / 8));
  REQUIRE(states(ZeroStage::parameters) == near(16.0 / 8));
}
