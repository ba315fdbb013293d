// What Megatron-Core's weight gradients, optimizer steps and buffers hold for a while; each was
// seen in a traced run (tests/reference/traced/megatron.jsonl).
#include "cost_model/program/moments.hpp"
#include "cost_model/runtime/megatron/layer.hpp"
#include "cost_model/runtime/megatron/stage.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

Bytes highest(const Block& block) {
  return fold(block, block.forward, Phase::optimizer_step).peak.live.allocated();
}

// Of the first stage.
Block step_of(const Problem& p) {
  const WeightInventory inventory = weight_inventory(p.model);
  const Stage stage = stages(p).front();
  return megatron_optimizer_step(p, inventory, stage, model_states(p, inventory, stage), Bytes{});
}

Problem with_narrow_moments(std::string_view model, const Layout& layout) {
  Problem p = problem(Runtime::megatron, model, layout);
  p.runtime.megatron.use_precision_aware_optimizer = true;
  p.runtime.megatron.exp_avg_bytes = 2;
  return p;
}

std::vector<Bytes> named(const Block& block, std::string_view name) {
  std::vector<Bytes> found;
  for (const TensorSpec& tensor : block.tensors) {
    if (tensor.name == name) found.push_back(tensor.bytes);
  }
  return found;
}

}  // namespace

// TransformerEngine pytorch/optimizers/fused_adam.py: fuse_unscale since 459e7cf49.
TEST_CASE("one narrow moment is widened for the step, and two of 16 bits are read as they are") {
  Problem p = with_narrow_moments("llama3-8b", {.dp = 8, .zero = ZeroStage::optimizer});
  CHECK(state_recipe(p).step_gradient_bytes == 4);
  p.runtime.megatron.exp_avg_sq_bytes = 2;
  CHECK(state_recipe(p).step_gradient_bytes == 0);
  CHECK(highest(step_of(p)) == Bytes{});
  p.runtime.megatron.transformer_engine_version = 213;
  CHECK(state_recipe(p).step_gradient_bytes == 8);
}

TEST_CASE("experts that other ranks divide are updated after the rest, not with it") {
  Problem p = with_narrow_moments("qwen3-30b-a3b",
                                  {.dp = 4, .tp = 2, .ep = 4, .zero = ZeroStage::optimizer});
  const WeightInventory inventory = weight_inventory(p.model);
  const auto elements = [&] {
    return stage_elements(p, inventory, stages(p).front(), state_recipe(p).padding);
  };
  const auto widened = [&] { return named(step_of(p), "fp32 moments").at(0).count(); };
  const StageElements apart = elements();
  REQUIRE(apart.dense.shard > 0);
  CHECK(widened() == 4 * std::max(apart.dense.shard, apart.expert.shard));
  p.layout.ep = 1;
  p.layout.etp = p.layout.tp;
  CHECK(widened() == 4 * elements().shard());
}

// The modules that the first buffers took over are gone when those of the experts are made.
TEST_CASE("dense modules are gone when the experts' buffers are made") {
  const Problem p =
      problem(Runtime::megatron, "mixtral-8x7b", {.dp = 8, .ep = 2, .zero = ZeroStage::optimizer});
  const WeightInventory inventory = weight_inventory(p.model);
  const Stage stage = stages(p).front();
  const auto held = [&](const Problem& question) {
    MemoryBreakdown resident;
    return megatron_construction(question, inventory, stage, resident).live[Category::parameters];
  };
  const StageElements elements = stage_elements(p, inventory, stage, state_recipe(p).padding);
  CHECK(std::abs(held(p).count() - 2 * elements.expert.full) < 100'000);  // rounded allocations
}

TEST_CASE("a linear makes its weight gradient where no product adds it up") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.tp = 2, .sequence_parallel = true});
  CHECK(named(megatron_layer(p, LayerKind::dense), "weight gradient").empty());
  p.runtime.megatron.gradient_accumulation_fusion = false;
  const auto of = [](std::int64_t inputs, std::int64_t outputs) {
    return Bytes{2 * inputs * outputs / 2};
  };
  const std::vector<Bytes> expected{of(14'336, 4096), of(4096, 2 * 14'336), of(4096, 4096),
                                    of(4096, 4096 + 2 * 1024)};
  CHECK(named(megatron_layer(p, LayerKind::dense), "weight gradient") == expected);
}
