// FSDP2's recipes by date against torchtitan's own code run on fake tensors, rank 0: the peak of
// what is allocated without cuBLAS's workspace, which such tensors do not have.
#include "cost_model/runtime/fsdp2/recipe.hpp"

#include "cost_model/answer/estimate.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

constexpr std::int64_t torchtitan_0_2_2 = 20260220;
constexpr std::int64_t torchtitan_0_3_0 = 20260821;

double tracked_mib(const Problem& p) {
  const MemoryBreakdown memory = estimate(p, Remembered(p.model)).stages.front().memory;
  const Bytes tracked = memory.allocated() - memory[Category::workspace];
  return static_cast<double>(tracked.count()) / mebi;
}

Problem run_of(std::string_view model,
               std::int64_t layers,
               std::int64_t sequence,
               const Layout& layout) {
  Problem p = tests::problem(Runtime::fsdp2, model, layout, "H100-80GB");
  p.model.layers = layers;
  p.training.sequence_length = sequence;
  p.runtime.fsdp2.recipe_date = torchtitan_0_2_2;
  return p;
}

}  // namespace

TEST_CASE("tensor-parallel ranks computed the gradient of the whole embedding") {
  struct Run {
    std::string_view model;
    std::int64_t layers, gpus;
    double measured_mib;
  };
  const Run run = GENERATE(Run{"llama3-70b", 8, 256, 3434.9}, Run{"llama3-70b", 80, 256, 7107.8},
                           Run{"llama3.1-405b", 6, 512, 7215.1});
  Problem p = run_of(run.model, run.layers, 8192,
                     {.dp = run.gpus / 8,
                      .tp = 8,
                      .zero = ZeroStage::parameters,
                      .sequence_parallel = true,
                      .recompute = Recompute::full});
  CHECK(tracked_mib(p) == Approx(run.measured_mib).epsilon(0.003));

  SECTION("until it looked up local rows") {
    p.runtime.fsdp2.recipe_date = 20260610;
    const double before = tracked_mib(p);
    p.runtime.fsdp2.recipe_date = 20260611;
    CHECK(tracked_mib(p) < before);
  }
}

TEST_CASE("the last gradient of a reduction stays until it has returned") {
  Problem p = run_of("llama3-8b", 6, 2048,
                     {.dp = 8, .zero = ZeroStage::parameters, .recompute = Recompute::full});
  p.runtime.fsdp2.reshard_after_forward = Reshard::always;
  CHECK(tracked_mib(p) == Approx(7507.2).epsilon(0.001));
}

TEST_CASE("the last part of a loss holds its sum, both ends of its reduction and its logits") {
  struct Run {
    std::int64_t layers, gpus;
    Recompute recompute;
    double measured_mib;
  };
  // torchtitan 0.3.0 with training.disable_cuda_graphs.
  const Run run = GENERATE(
      Run{4, 8, Recompute::none, 13'810.6}, Run{4, 8, Recompute::full, 8'798.3},
      Run{4, 8, Recompute::selective, 10'594.3}, Run{8, 64, Recompute::selective, 10'192.0},
      Run{32, 8, Recompute::selective, 33'806.8});
  Problem p = run_of("llama3-8b", run.layers, 8192,
                     {.dp = run.gpus, .zero = ZeroStage::parameters, .recompute = run.recompute});
  p.runtime.fsdp2.recipe_date = torchtitan_0_3_0;
  CHECK(tracked_mib(p) == Approx(run.measured_mib).epsilon(0.005));
}

TEST_CASE("ring attention keeps its merged output beside what the projection reads") {
  struct Run {
    std::int64_t layers, gpus, tp, cp, sequence;
    Recompute recompute;
    double measured_mib;
  };
  const Run run = GENERATE(Run{6, 16, 1, 2, 16'384, Recompute::none, 23'136.4},
                           Run{6, 32, 1, 4, 32'768, Recompute::full, 14'398.5},
                           Run{4, 32, 2, 2, 16'384, Recompute::none, 12'335.6});
  const Problem p = run_of("llama3-8b", run.layers, run.sequence,
                           {.dp = run.gpus / run.tp / run.cp,
                            .tp = run.tp,
                            .cp = run.cp,
                            .zero = ZeroStage::parameters,
                            .sequence_parallel = run.tp > 1,
                            .recompute = run.recompute});
  CHECK(tracked_mib(p) == Approx(run.measured_mib).epsilon(0.003));
}

TEST_CASE("each layer has a rotary table of its own where it turns by itself") {
  Problem p = run_of("llama3-8b", 32, 8192, {.dp = 8, .zero = ZeroStage::parameters});
  const auto workspace = [&](std::int64_t date) {
    p.runtime.fsdp2.recipe_date = date;
    return estimate(p, Remembered(p.model)).stages.front().memory[Category::workspace];
  };
  const std::int64_t table = 8192 * 64 * 8;  // a complex number for each pair of features
  CHECK(workspace(20260605) - workspace(20260604) == Bytes{31 * table});
}

TEST_CASE("torchtitan weighs what experts give in fp32, and saved none of their products") {
  struct Run {
    std::int64_t layers, gpus, ep, sequence;
    Recompute recompute;
    double measured_mib;
  };
  const Run run = GENERATE(Run{6, 8, 1, 4096, Recompute::none, 18'575.6},
                           Run{4, 64, 8, 4096, Recompute::none, 11'330.6},
                           Run{6, 64, 1, 4096, Recompute::full, 8'639.5},
                           Run{4, 8, 1, 4096, Recompute::selective, 12'553.4});
  const Problem p = run_of(
      "qwen3-30b-a3b", run.layers, run.sequence,
      {.dp = run.gpus, .ep = run.ep, .zero = ZeroStage::parameters, .recompute = run.recompute});
  CHECK(tracked_mib(p) == Approx(run.measured_mib).epsilon(0.01));
}
