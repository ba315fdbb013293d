// Backward passes split in two: what stays until the weight gradients.
#include "cost_model/program/timeline.hpp"
#include "cost_model/remember/evaluator.hpp"
#include "cost_model/runtime/megatron/layer.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

Problem split(Schedule schedule, std::int64_t pp, std::int64_t batch = 64) {
  Problem p = problem(Runtime::megatron, "gpt3-175b",
                      {.tp = 8, .pp = pp, .sequence_parallel = true, .schedule = schedule});
  p.layout.vpp = schedule == Schedule::zb_v ? 2 : 1;
  p.training.sequence_length = 2048;
  p.training.global_batch = batch;
  p.runtime.megatron.pipeline_code =
      schedule == Schedule::dualpipe ? PipelineCode::dualpipe : PipelineCode::zero_bubble;
  return p;
}

// The most that one category reaches, at whatever moment.
double most(const Problem& p, std::int64_t rank, Category category) {
  const Stage stage = stages(p)[static_cast<std::size_t>(rank)];
  const StageProgram program = Evaluator(p).stage_program(p, stage);
  Bytes highest;
  for (const MemoryBreakdown& live : timeline(program, representative_passes(p, rank)).live) {
    highest = std::max(highest, live[category]);
  }
  return static_cast<double>(highest.count());
}

double activations(const Problem& p, std::int64_t rank) {
  return most(p, rank, Category::activations);
}

}  // namespace

TEST_CASE("a split backward pass has the events of the whole, each once") {
  for (const std::string_view model : {"llama3-70b", "mixtral-8x7b", "deepseek-v3", "gpt2-xl"}) {
    Problem p = problem(Runtime::megatron, model, {});
    p.training.sequence_length = 1024;
    for (const LayerKind kind : {LayerKind::dense, LayerKind::moe}) {
      if (kind == LayerKind::moe && !p.model.moe) continue;
      CAPTURE(model, name_of(p.layout.recompute));
      const auto block = folded(megatron_layer(p, kind));
      const MemoryBreakdown both = block->backward_with(BackwardPart::input_gradient, {}).left +
                                   block->backward_with(BackwardPart::weight_gradient, {}).left;
      REQUIRE(both == block->backward_with(BackwardPart::whole, {}).left);
    }
  }
}

// Qi et al. (arXiv 2401.10241), Table 1: W reads 32 sbh of a layer, inputs of the four linears and
// gradients of their outputs. GPT-3's layers keep 34 sbh without scores.
TEST_CASE("what waits for the weight gradients is inputs and output gradients of the linears") {
  Problem p = problem(Runtime::megatron, "gpt3-175b", {});
  p.training.sequence_length = 2048;
  const std::int64_t sbh = 2048LL * 12'288;
  const auto block = folded(megatron_layer(p, LayerKind::dense));
  const Bytes waits = -1 * block->backward_with(BackwardPart::weight_gradient, {}).left.allocated();
  // Inputs 2 + 2 + 2 + 8 and gradients 6 + 2 + 8 + 2, of which fc2's comes from the layer behind.
  REQUIRE(waits == Bytes{32 * sbh});
}

TEST_CASE("activations in flight follow the published numbers of each schedule") {
  constexpr std::int64_t pp = 8;
  const double one = activations(split(Schedule::one_f_one_b, pp), 0) / pp;  // of a micro-batch
  for (const std::int64_t rank : {1, 4, 6}) {
    CAPTURE(rank);
    // Micro-batches that only wait for their weight gradients hold inputs as activations; the
    // gradients beside them are temporaries.
    REQUIRE(activations(split(Schedule::zb_h1, pp), rank) <= pp * one);
    REQUIRE(activations(split(Schedule::zb_h2, pp), rank) <= (2 * pp - 1) * one);
    REQUIRE(activations(split(Schedule::zb_h2, pp), rank) >
            1.5 * activations(split(Schedule::zb_h1, pp), rank));
    REQUIRE(activations(split(Schedule::zb_v, pp), rank) <= 1.01 * pp * one);
    REQUIRE(activations(split(Schedule::dualpipe, pp), rank) <= 1.01 * (pp + 1) * one);
  }
  // Rank 0 puts nothing off in ZB-H1 beyond the pass after: it holds what 1F1B's does.
  REQUIRE(activations(split(Schedule::zb_h1, pp), 0) == Approx(pp * one));
  REQUIRE(activations(split(Schedule::zb_h2, pp), 0) == Approx((2 * pp - 1) * one).epsilon(0.02));
}

TEST_CASE("both ends of the model are where the ranks' outermost chunks are") {
  const Problem v = split(Schedule::zb_v, 4);
  REQUIRE(begins_model(stages(v)[0], 0));
  REQUIRE(ends_model(stages(v)[0], 1));
  const Problem dual = split(Schedule::dualpipe, 4);
  REQUIRE(begins_model(stages(dual)[0], 0));
  REQUIRE(ends_model(stages(dual)[0], 1));
  REQUIRE(ends_model(stages(dual)[3], 0));
  REQUIRE(begins_model(stages(dual)[3], 1));
  REQUIRE_FALSE(begins_model(stages(dual)[1], 1));
}
