// The ZeRO paper's figures, by its own arithmetic as a program.
#include "cost_model/runtime/paper/stage.hpp"

#include "cost_model/answer/estimate.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

Bytes activations(const Problem& p) {
  return estimate(p, Evaluator(p)).stages.front().memory[Category::activations];
}

}  // namespace

TEST_CASE("a layer of the ZeRO paper keeps twelve elements a token and feature") {
  Problem p = tests::problem(Runtime::zero_paper, "gpt2-xl", {.dp = 4});
  p.training.sequence_length = 1000;
  const std::int64_t layer = 12 * 2 * 1600 * 1000;
  REQUIRE(activations(p) == Bytes{48 * layer});

  SECTION("tensor parallelism divides them") {
    p.layout.tp = 2;
    REQUIRE(activations(p) == Bytes{48 * layer / 2});
  }
  SECTION("checkpoints are inputs, and one layer is made again") {
    p.layout.recompute = Recompute::full;
    REQUIRE(activations(p) == Bytes{48 * layer / 12 + layer});
  }
  SECTION("a pipeline keeps those of the micro-batches in flight") {
    p.layout.pp = 4;
    p.training.global_batch = 4 * 16;
    REQUIRE(activations(p) == Bytes{4 * 12 * layer});
  }
}

TEST_CASE("nothing but states and activations is in the paper's arithmetic") {
  const Problem p =
      tests::problem(Runtime::zero_paper, "gpt2-xl", {.dp = 4, .zero = ZeroStage::gradients});
  const StageMemory memory = estimate(p, Evaluator(p)).stages.front();
  const MemoryBreakdown& m = memory.memory;
  REQUIRE(m.device() == m.allocated());
  REQUIRE(m.allocated() >= memory.states.total() + m[Category::activations]);
  REQUIRE(m.allocated() < memory.states.total() + m[Category::activations] + Bytes{4 * 512});
}
