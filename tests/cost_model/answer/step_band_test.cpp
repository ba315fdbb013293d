// How far the step may be off, and what is said where nobody measured.
#include "cost_model/answer/step_band.hpp"

#include "cost_model/kernel/layer_time.hpp"
#include "cost_model/kernel/time_constants.hpp"
#include "planner/request.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

// With tokens enough that the host keeps up.
Problem busy(std::string_view model, std::string_view gpu, Precision precision) {
  Problem p = problem(Runtime::megatron, model, {.dp = 8, .micro_batch = 8}, gpu);
  p.training.precision = precision;
  return p;
}

bool says(const Problem& p, std::string_view part) {
  Request request{.model = p.model, .cluster = p.cluster, .runtime = p.runtime};
  request.precision = p.training.precision;
  for (const std::string& line : assumptions(request, p)) {
    if (line.find(part) != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("a measured family has its own band, others a wider one that is said") {
  const Problem measured = busy("llama3-70b", "GB300", Precision::fp8);
  CHECK(step_band(measured).measured);
  CHECK_FALSE(says(measured, "no measured run"));

  const Problem dense = busy("llama3-70b", "A100-80GB", Precision::bf16);
  CHECK_FALSE(step_band(dense).measured);
  CHECK(step_band(dense).half_width > step_band(measured).half_width);
  CHECK(says(dense,
             "the step may be 27 % off: no measured run of megatron in bf16 on Ampere "
             "without experts is known"));

  const Problem experts = busy("mixtral-8x7b", "B200", Precision::nvfp4);
  CHECK_FALSE(step_band(experts).measured);
  CHECK(step_band(experts).half_width > step_band(dense).half_width);
  // A card for desktops is no B200.
  CHECK_FALSE(step_band(busy("llama3-8b", "RTX-5090", Precision::bf16)).measured);
}

TEST_CASE("every runtime that was measured is so on the GPUs and formats of its runs alone") {
  struct Kind {
    Runtime runtime;
    std::string_view gpu;
    Precision precision;
    bool measured;
  };
  using enum Precision;
  for (const Kind& kind :
       {Kind{Runtime::fsdp2, "A100-80GB", bf16, true},
        Kind{Runtime::fsdp2, "H100-80GB", bf16, true}, Kind{Runtime::fsdp2, "H100-80GB", fp8, true},
        Kind{Runtime::fsdp2, "B200", bf16, false}, Kind{Runtime::nanotron, "H100-80GB", bf16, true},
        Kind{Runtime::nanotron, "A100-80GB", bf16, false},
        Kind{Runtime::deepspeed, "V100-32GB", fp16, true},
        Kind{Runtime::deepspeed, "H100-80GB", bf16, false}}) {
    CAPTURE(name_of(kind.runtime), kind.gpu, name_of(kind.precision));
    Problem p = problem(kind.runtime, "llama3-8b", {.dp = 8}, kind.gpu);
    p.training.precision = kind.precision;
    CHECK(step_band(p).measured == kind.measured);
    CHECK(says(p, "no measured run") != kind.measured);
  }
  Problem local = problem(Runtime::megatron, "megatron-22b", {.tp = 8}, "A100-80GB");
  local.runtime = load_runtime(Runtime::megatron, {{"transformer_engine", "local"}});
  CHECK(step_band(local).measured);
  local.cluster = cluster_of("H100-80GB", 8);
  CHECK_FALSE(step_band(local).measured);
}

TEST_CASE("experts are predicted less well than dense models, and hosts worst of all") {
  const auto half = [](const Problem& p) { return step_band(p).half_width; };
  const Problem dense = busy("llama3-70b", "B200", Precision::fp8);
  const Problem experts = busy("mixtral-8x7b", "B200", Precision::fp8);
  CHECK(half(experts) > half(dense));
  Problem waiting = problem(Runtime::megatron, "llama3.2-1b", {.tp = 8}, "B200");
  CHECK(half(waiting) > half(experts));
  // Graphs take the launches away.
  waiting.runtime.megatron.cuda_graph_impl = CudaGraphs::full_iteration;
  CHECK(half(waiting) < half(experts));
}

// The longer a sample, the busier the GPU for what the host starts once a layer.
TEST_CASE("a step waits for its host where that takes twice as long as the GPU") {
  Problem p = problem(Runtime::megatron, "llama3.2-1b", {.tp = 2}, "B200");
  const auto ratio = [&] {
    const BlockTime layer = layer_time(p, LayerKind::dense);
    return (layer.host.forward + layer.host.backward) /
           (layer.forward.total() + layer.backward().total());
  };
  for (const double border : {1.98, 2.02}) {
    std::int64_t low = 8, high = 1 << 20;
    while (low < high) {  // the first that is no longer as far off
      const std::int64_t middle = p.training.sequence_length = (low + high) / 2;
      if (ratio() > border) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    p.training.sequence_length = low;
    CAPTURE(border, low, ratio());
    REQUIRE(ratio() == Approx(border).epsilon(0.009));
    CHECK((step_band(p).half_width == 0.9) == (border > 2));
  }
}

// The host launches little of a state space that a graph holds, and runs ahead in it.
TEST_CASE("all layers together decide whether a step waits for its host") {
  Problem p = problem(Runtime::megatron, "nemotron-3-super-120b-a12b",
                      {.dp = 32, .tp = 2, .ep = 64, .sequence_parallel = true}, "GB200");
  p.training.precision = Precision::nvfp4;
  p.runtime.megatron.cuda_graph_impl = CudaGraphs::transformer_engine;
  p.runtime.megatron.cuda_graph_scope = 1U << static_cast<unsigned>(GraphScope::mamba) |
                                        1U << static_cast<unsigned>(GraphScope::attn);
  p.training.sequence_length = 7168;
  const BlockTime experts = layer_time(p, LayerKind::experts);
  REQUIRE(experts.host.forward + experts.host.backward >
          2 * (experts.forward.total() + experts.backward().total()));
  CHECK(step_band(p).measured);
  CHECK(step_band(p).half_width == 0.15);
}

TEST_CASE("hybrids have the bands of the GPUs and formats that they were measured on") {
  using enum Precision;
  const auto half = [](std::string_view gpu, Precision precision) {
    Problem p = problem(Runtime::megatron, "nemotron-3-nano-30b-a3b", {.dp = 8, .ep = 8}, gpu);
    p.training.precision = precision;
    p.runtime.megatron.cuda_graph_impl = CudaGraphs::full_iteration;
    const StepBand band = step_band(p);
    return band.measured ? band.half_width : 0;
  };
  CHECK(half("H100-80GB", bf16) == 0.3);
  CHECK(half("H100-80GB", fp8) == 0.22);
  CHECK(half("B200", bf16) == 0.35);
  CHECK(half("B200", fp8) == 0.12);
  CHECK(half("B200", nvfp4) == 0.15);
  CHECK(half("B300", fp8) == 0.115);
  CHECK(half("B300", nvfp4) == 0.18);
  CHECK(half("B300", bf16) == 0);
  CHECK(half("A100-80GB", bf16) == 0);
}

TEST_CASE("a generation that nobody knows is timed with a named one's efficiencies") {
  Problem p = busy("llama3-70b", "GB300", Precision::fp8);
  CHECK(stand_in_generation(p.cluster.gpu).empty());
  p.cluster.gpu.name = "R200";
  p.cluster.gpu.architecture = "Rubin";
  p.cluster.gpu.compute_capability = 107;
  CHECK(stand_in_generation(p.cluster.gpu) == "Blackwell");
  CHECK(step_band(p).half_width >= 0.7);
  CHECK(says(p, "R200 is timed with Blackwell's efficiencies, no others being known for Rubin"));
}
