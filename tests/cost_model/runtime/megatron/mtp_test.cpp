// Multi-token prediction against sums worked by hand.
#include "cost_model/runtime/megatron/mtp.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "cost_model/kernel/flops.hpp"
#include "cost_model/program/play.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/remember/evaluator.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

Problem with_modules(std::string_view model, std::int64_t modules, const Layout& layout) {
  Problem p = problem(Runtime::megatron, model, layout);
  p.training.sequence_length = 4096;
  p.runtime.megatron.mtp_num_layers = modules;
  return p;
}

std::int64_t parameters(const Problem& p) {
  return model_states(p, weight_inventory(p.model), stages(p).back()).parameters.count() / 2;
}

// Bytes that the forward pass of the last stage leaves.
std::int64_t kept(const Problem& p) {
  Bytes sum;
  const StageProgram program = Evaluator(p).stage_program(p, stages(p).back());
  for (const Run& run : program.chunks.back().runs) {
    sum += run.count * run.block->forward.left.allocated();
  }
  return sum.count();
}

}  // namespace

// A layer of 218,112,000 parameters, the projection 2 h^2, and three norms of h.
TEST_CASE("a module adds a layer, a projection and norms; the last stage its own embedding") {
  const std::int64_t h = 4096;
  const std::int64_t layer = 218'112'000;
  const std::int64_t module = layer + 2 * h * h + 3 * h;
  const Problem one = with_modules("llama3-8b", 1, {});
  // Buffers are padded, tensor by tensor to 64 elements.
  REQUIRE(parameters(one) - parameters(with_modules("llama3-8b", 0, {})) ==
          Approx(module).margin(1024));
  const auto last = [](std::int64_t modules) {
    return parameters(with_modules("llama3-8b", modules, {.pp = 4}));
  };
  REQUIRE(last(1) - last(0) == Approx(module + 128'256 * h).margin(1024));
  REQUIRE(last(2) - last(1) == Approx(module).margin(1024));
}

// Besides a layer's 139,400 bytes a token: token ids 8, the embedding 2 h, statistics 2 x 4, the
// joined input 4 h, the projection's and the layer's output 2 h each; then labels 12, final norm
// 2 h + 4, logits' softmax 4 V (or 2 V in place), and the hidden state handed on 2 h. The layer's
// figure counts one of the outputs.
TEST_CASE("the logits of every depth stay until the backward pass") {
  const std::int64_t h = 4096;
  Problem p = with_modules("llama3-8b", 0, {});
  p.runtime.megatron.cross_entropy_loss_fusion = false;
  const std::int64_t none = kept(p);
  p.runtime.megatron.mtp_num_layers = 1;
  const std::int64_t a_token =
      139'400 + 8 + 2 * h + 8 + 4 * h + 2 * h + 12 + 2 * h + 4 + 4 * 128'256 + 2 * h;
  REQUIRE((kept(p) - none) / 4096 == a_token);
}

TEST_CASE("the module's layer is of the model's last kind") {
  const Problem p = with_modules("deepseek-v3", 1, {.ep = 8});
  const StageProgram program = Evaluator(p).stage_program(p, stages(p).front());
  const Runs& runs = program.chunks.back().runs;
  // Dense layers, experts, the module's three blocks and the head.
  REQUIRE(runs.size() == 1 + 2 + 3 + 1);
  REQUIRE(runs[4].block == runs[2].block);
}

TEST_CASE("a module that runs again is held once, and keeps as much each time") {
  Problem p = with_modules("llama3-8b", 3, {});
  const std::int64_t all = kept(p), held = parameters(p);
  p.runtime.megatron.mtp_use_repeated_layer = true;
  CHECK(kept(p) == all);
  CHECK(parameters(p) == parameters(with_modules("llama3-8b", 1, {})));
  CHECK(parameters(p) < held);
}

// Recompute of the first layers of each chunk leaves a module's only layer alone.
TEST_CASE("a module's layer runs again where each layer does, and not where some do") {
  struct Answer {
    Bytes kept;    // by the module's layer
    double again;  // FLOPs that recompute repeats
  };
  const auto of = [](RecomputeMethod method, std::int64_t layers) {
    Problem p = with_modules("llama3-8b", 1, {.recompute = Recompute::full});
    p.runtime.megatron.recompute_method = method;
    p.runtime.megatron.recompute_num_layers = layers;
    const Evaluator evaluator(p);
    const StageProgram program = evaluator.stage_program(p, stages(p).back());
    const Runs& runs = program.chunks.back().runs;
    const StepFlops flops = step_flops(p, ScoreCount::causal);
    return Answer{runs.at(runs.size() - 3).block->forward.left.allocated(),
                  flops.hardware - flops.model};
  };
  const Answer all = of(RecomputeMethod::uniform, 1), first = of(RecomputeMethod::block, 32);
  CHECK(all.kept == Bytes{2 * 4096 * 4096});  // its input
  CHECK(first.kept > 10 * all.kept);
  CHECK(all.again == Approx(33.0 / 32 * first.again));

  // Of several it takes as many first ones as of a chunk.
  Problem several = with_modules("nemotron-3.5-lightning-30b-a3b", 1, {});
  several.layout.recompute = Recompute::full;
  CHECK(mtp_layers(several).at(1).repeated);
  several.runtime.megatron.recompute_method = RecomputeMethod::block;
  several.runtime.megatron.recompute_num_layers = 1;
  CHECK(mtp_layers(several).at(0).repeated);
  CHECK_FALSE(mtp_layers(several).at(1).repeated);
}

// Autograd adds up the gradients of a table that several modules read: the first that is made, by
// the last module, is there until the embedding has its own, or until the first module has where
// the embedding is on another stage.
TEST_CASE("a module's gradient of the embedding waits for the others of the same table") {
  const auto waiting = [](std::int64_t modules, std::int64_t pp) {
    const Problem p = with_modules("llama3-8b", modules, {.pp = pp});
    const Evaluator evaluator(p);
    const StageProgram program = evaluator.stage_program(p, stages(p).back());
    std::string moments;
    play_step(program, {{PassKind::forward, 0, 0}, {PassKind::backward, 0, 0}},
              {.tensor = [&](const Played& event) {
                if (event.tensor.name != waiting_table_gradient.name) return;
                CHECK(event.tensor.bytes == Bytes{2 * 128'256 * 4096});
                moments +=
                    fmt::format("{}{} ", event.allocates ? "made at " : "gone at ", event.block);
              }});
    return moments;
  };
  // Embedding 0, layers 1 to 32, then input, layer and head of each module.
  CHECK(waiting(0, 1).empty());
  CHECK(waiting(1, 1) == "made at 33 gone at 0 ");
  CHECK(waiting(2, 1) == "made at 36 gone at 0 ");
  // Layers 0 to 7.
  CHECK(waiting(1, 4).empty());
  CHECK(waiting(2, 4) == "made at 11 gone at 8 ");
}

// Attention and experts, each a block of its own between the module's input and its head.
TEST_CASE("a module's layers are of the kinds that the model says") {
  const auto runs = [](std::int64_t modules) {
    const Problem p = with_modules("nemotron-3.5-lightning-30b-a3b", modules, {});
    return Evaluator(p).stage_program(p, stages(p).back()).chunks.back().runs.size();
  };
  CHECK(runs(1) - runs(0) == 4);
  Problem cut = with_modules("nemotron-3.5-lightning-30b-a3b", 1, {});
  cut.model.layers = 1;  // a state space alone
  cut.model.layer_kinds.resize(1);
  const std::vector<Weight> module = mtp_module_weights(cut.model);
  CHECK(std::ranges::count(module, "q_proj", &Weight::name) == 1);
  CHECK(std::ranges::count(module, "router", &Weight::name) == 1);
  CHECK(Evaluator(cut).stage_program(cut, stages(cut).back()).chunks.back().runs.size() == 7);
}
