#include "cost_model/program/moments.hpp"

#include "cost_model/remember/evaluator.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

// Adam's two moments for every optimizer were 16 GiB too many of SGD's.
TEST_CASE("a replay makes the tensors of the optimizer that was asked for") {
  const auto [runtime, layout] = GENERATE(
      table<Runtime, Layout>({{Runtime::megatron, {.dp = 2, .zero = ZeroStage::optimizer}},
                              {Runtime::fsdp2, {.dp = 2, .zero = ZeroStage::parameters}},
                              {Runtime::deepspeed, {.dp = 2, .zero = ZeroStage::parameters}},
                              {Runtime::nanotron, {.dp = 2, .zero = ZeroStage::optimizer}}}));
  const auto optimizer = GENERATE(OptimizerKind::adam, OptimizerKind::sgd, OptimizerKind::adam8bit);
  CAPTURE(name_of(runtime), name_of(optimizer));
  Problem p = problem(runtime, "llama3-8b", layout);
  p.training.optimizer = optimizer;
  const Evaluator evaluator(p);
  const Stage stage = stages(p).front();

  const Startup startup = evaluator.startup(p, stage, evaluator.stage_program(p, stage));

  Bytes made;
  for (const TensorSpec& made_once : startup.moments) {  // gradients among them that then stay
    if (made_once.category == Category::optimizer_states) made += made_once.bytes;
  }
  const Bytes kept = model_states(p, evaluator.weights(), stage).optimizer_states;
  // Each tensor is rounded up, and a fused step counts its steps; buffers are padded.
  const Bytes rounding = 3 * std::ssize(startup.moments) * Bytes{allocation_unit};
  REQUIRE(made <= kept + rounding);
  REQUIRE(kept <= made + rounding);
}

TEST_CASE("Muon makes one tensor of a hidden matrix and two of all else") {
  const StateRecipe recipe;
  constexpr auto muon = OptimizerKind::muon;
  REQUIRE(moment_tensors(muon, recipe, 100, true) == std::vector{Bytes{400}});
  REQUIRE(moment_tensors(muon, recipe, 100, false) == std::vector{Bytes{400}, Bytes{400}});
}

TEST_CASE("8-bit Adam makes two moments of a byte and two scales for each 256 of them") {
  REQUIRE(moment_tensors(OptimizerKind::adam8bit, {}, 512, true) ==
          std::vector{Bytes{512}, Bytes{512}, Bytes{8}, Bytes{8}});
}
