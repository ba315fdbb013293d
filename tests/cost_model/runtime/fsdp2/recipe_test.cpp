// FSDP2's recipes by date against torchtitan's own code run on fake tensors, rank 0: the peak of
// what is allocated without cuBLAS's workspace, which such tensors do not have.
#include "cost_model/runtime/fsdp2/recipe.hpp"

#include <algorithm>

#include "cost_model/answer/estimate.hpp"
#include "cost_model/legality/legality.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"
#include "tests/tracked.hpp"

using namespace zeroplan;
using tests::tracked_mib;

namespace {

constexpr std::int64_t torchtitan_0_2_2 = 20260220;
constexpr std::int64_t torchtitan_0_3_0 = 20260821;

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
  p.runtime.fsdp2.disable_cuda_graphs = RecipeSwitch::on;
  CHECK(tracked_mib(p) == Approx(run.measured_mib).epsilon(0.005));
}

TEST_CASE("a captured step keeps its gradients alive") {
  struct Run {
    std::int64_t layers, sequence, micro_batch, steps;
    Recompute recompute;
    double measured_mib;
  };
  // torchtitan 0.3.0, PyTorch 2.14.1, which captures by default.
  const Run run = GENERATE(Run{4, 8192, 1, 1, Recompute::none, 14'727.6},
                           Run{4, 4096, 2, 1, Recompute::full, 9'771.4},
                           Run{6, 8192, 1, 2, Recompute::selective, 13'377.5},
                           Run{32, 8192, 1, 1, Recompute::selective, 37'635.9});
  Problem p = run_of("llama3-8b", run.layers, run.sequence,
                     {.dp = 8,
                      .micro_batch = run.micro_batch,
                      .zero = ZeroStage::parameters,
                      .recompute = run.recompute});
  p.training.global_batch *= run.steps;
  p.runtime.fsdp2.recipe_date = torchtitan_0_3_0;
  // Its loss still cuts each sample into parts, which are copied.
  if (run.micro_batch > 1) p.runtime.fsdp2.recipe_date = 20260819;
  CHECK(tracked_mib(p) == Approx(run.measured_mib).epsilon(0.005));

  SECTION("from 2026-08-13 on") {
    p.runtime.fsdp2.recipe_date = 20260812;
    CHECK_FALSE(fsdp2_recipe(p).keeps_gradients);
    p.runtime.fsdp2.recipe_date = 20260813;
    CHECK(fsdp2_recipe(p).keeps_gradients);
  }

  SECTION("but not under expert parallelism, which waits for the host") {
    p = tests::problem(Runtime::fsdp2, "qwen3-30b-a3b",
                       {.dp = 8, .ep = 8, .zero = ZeroStage::parameters}, "H100-80GB");
    CHECK_FALSE(fsdp2_recipe(p).keeps_gradients);
    p.runtime.fsdp2.disable_cuda_graphs = RecipeSwitch::off;
    CHECK(first_violation(p)->rule == "T-graphs");
  }
}

TEST_CASE("before 2026-04-09 torchtitan wraps no single data-parallel rank") {
  Problem p = tests::problem(Runtime::fsdp2, "llama3-8b",
                             {.dp = 1, .tp = 8, .zero = ZeroStage::parameters}, "H100-80GB");
  CHECK_FALSE(first_violation(p));
  p.runtime.fsdp2.recipe_date = 20260408;
  CHECK(first_violation(p)->rule == "T-one-rank");
  p.runtime.fsdp2.layers = LayerCode::huggingface;
  CHECK((!first_violation(p) || first_violation(p)->rule != "T-one-rank"));
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
    return estimate(p, Evaluator(p)).stages.front().memory[Category::workspace];
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

TEST_CASE("what each all-to-all of tokens gives is kept where a list of operators names it") {
  struct Run {
    std::string_view model;
    std::int64_t layers, date;
    double measured_mib;
  };
  // Of torchtitan 0.2.2's models DeepSeek names it, Qwen3 does not; 0.3.0 runs another.
  const Run run = GENERATE(Run{"deepseek-v2-lite", 6, torchtitan_0_2_2, 7627.0},
                           Run{"qwen3-30b-a3b", 4, torchtitan_0_2_2, 8655.1},
                           Run{"deepseek-v2-lite", 6, torchtitan_0_3_0, 3619.5});
  Problem p =
      run_of(run.model, run.layers, 4096,
             {.dp = 64, .ep = 8, .zero = ZeroStage::parameters, .recompute = Recompute::selective});
  p.runtime.fsdp2.recipe_date = run.date;
  CHECK(tracked_mib(p) == Approx(run.measured_mib).epsilon(0.003));
}

// At DeepSeek-V3's width a checkpoint's layer needs more than the loss: its experts' tokens as they
// were sent and as they return, and the product that weighs them in fp32.
TEST_CASE("variables of the expert layer hold the tokens that it sent") {
  const auto [recompute, measured_mib] =
      GENERATE(std::pair(Recompute::full, 11'892.1), std::pair(Recompute::selective, 14'046.1));
  const Problem p =
      run_of("deepseek-v3", 5, 4096,
             {.dp = 256, .ep = 32, .zero = ZeroStage::parameters, .recompute = recompute});
  CHECK(tracked_mib(p) == Approx(measured_mib).epsilon(0.003));
}

TEST_CASE("tied embeddings became two parameters, gathered and reduced each") {
  struct Run {
    std::string_view model;
    Recompute recompute;
    RecipeSwitch disables_graphs;
    double measured_mib;
  };
  // torchtitan 0.3.0, PyTorch 2.14.1, less 8 rotary tables of 4 MiB.
  const Run run = GENERATE(Run{"qwen3-0.6b", Recompute::full, RecipeSwitch::on, 2756.4 - 32},
                           Run{"qwen3-1.7b", Recompute::selective, RecipeSwitch::off, 6491.9 - 32});
  Problem p = run_of(run.model, 8, 4096,
                     {.dp = 8, .zero = ZeroStage::parameters, .recompute = run.recompute});
  p.runtime.fsdp2.disable_cuda_graphs = run.disables_graphs;
  p.runtime.fsdp2.recipe_date = 20260817;
  const double before = tracked_mib(p);
  p.runtime.fsdp2.recipe_date = torchtitan_0_3_0;
  CHECK(tracked_mib(p) == Approx(run.measured_mib).epsilon(0.001));
  CHECK(tracked_mib(p) > before);
}

TEST_CASE(
    "PyTorch is the newest for Transformers, the nightly of the day for torchtitan, or as told") {
  const auto version = [](const std::vector<Override>& settings) {
    return torch_version(load_runtime(Runtime::fsdp2, settings).fsdp2);
  };
  CHECK(version({{"layers", "huggingface"}}) == 215);
  CHECK(version({{"recipe_date", "2026-09-25"}}) == 214);
  CHECK(version({{"recipe_date", "2026-09-26"}}) == 215);
  CHECK(version({{"layers", "huggingface"}, {"torch_version", "2.10"}}) == 210);
}

TEST_CASE("PyTorch 2.15 widens each part's gradient of the head before it is added") {
  struct Run {
    std::string_view model;
    std::int64_t layers, sequence, gpus, tp;
    double measured_mib;
  };
  // torchtitan 0.3.0, PyTorch 2.15.0, less the workspace: rotary tables of the other layers.
  const Run run = GENERATE(Run{"llama3-8b", 32, 8192, 8, 1, 64'117.4 - 128},
                           Run{"llama3-8b", 32, 8192, 16, 2, 34'335.2 - 128},
                           Run{"qwen3-1.7b", 28, 4096, 8, 1, 17'225.7 - 112});
  Problem p = run_of(run.model, run.layers, run.sequence,
                     {.dp = run.gpus / run.tp,
                      .tp = run.tp,
                      .zero = ZeroStage::parameters,
                      .sequence_parallel = run.tp > 1});
  p.runtime.fsdp2.recipe_date = torchtitan_0_3_0;
  p.runtime.fsdp2.torch_version = 214;
  const double before = tracked_mib(p);
  p.runtime.fsdp2.torch_version = 215;
  CHECK(tracked_mib(p) == Approx(run.measured_mib).epsilon(0.001));
  CHECK(tracked_mib(p) > 1.01 * before);

  SECTION("but not where gradients are reduced in 16 bits") {
    p.runtime.fsdp2.reduce_format = ReduceFormat::bf16;
    CHECK_FALSE(fsdp2_recipe(p).widens_gradients);
  }
}

TEST_CASE(
    "layers that are wrapped one by one take a loop of one's own, from the first of them on") {
  Problem p = tests::problem(Runtime::fsdp2, "llama3-8b", {.dp = 8});
  const auto says = [&] {
    return std::ranges::any_of(code_of(p).assumptions(p), [](const std::string& line) {
      return line.find("wraps layers one by one") != line.npos;
    });
  };
  CHECK_FALSE(says());
  p.runtime.fsdp2.recompute_num_layers = 1;
  CHECK(says());
  p.runtime.fsdp2.recompute_num_layers = 0;
  p.runtime.fsdp2.no_reshard_layers = 1;
  CHECK(says());
}
