// The ZeRO paper's figures, by its own arithmetic as a program.
#include "cost_model/runtime/paper/stage.hpp"

#include "cost_model/answer/estimate.hpp"
#include "cost_model/rank/token_shape.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

Bytes activations(const Problem& p) {
  return estimate(p, Evaluator(p)).stages.front().memory[Category::activations];
}

// Features of what tensor parallelism reduces in one dense layer, forward and backward.
std::int64_t reduced_features(std::string_view model) {
  const Problem p = tests::problem(Runtime::zero_paper, model, {.tp = 4});
  const Block layer = code_of(p).block(p, weight_inventory(p.model), BlockKind::layer,
                                       LayerKind::dense, RepeatSet{});
  std::int64_t bytes = 0;
  for (const Call& call : layer.calls) {
    const bool reduces = call.group == "tp" && call.collective == Collective::all_reduce;
    bytes += reduces ? call.times * call.payload.count() : 0;
  }
  return bytes / (2 * local_tokens(p));
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

// Both halves' outputs and the MLP's input are hidden states; attention reads those too, or the
// latents of its up-projections.
TEST_CASE("what the paper's tensor parallelism reduces is as wide as what linears read") {
  CHECK(reduced_features("llama3-8b") == 4 * 4096);
  CHECK(reduced_features("deepseek-v3") == 3 * 7168 + 1536 + 512);
  CHECK(reduced_features("deepseek-v2-lite") == 3 * 2048 + 2048 + 512);  // queries have no latent
}
