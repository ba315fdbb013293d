// How fast are the answers? Evaluations per second on one core, and whole questions.
#include <benchmark/benchmark.h>

#include "cost_model/answer/estimate.hpp"
#include "planner/candidates.hpp"
#include "planner/fit.hpp"
#include "presets/catalog.hpp"
#include "presets/runtime.hpp"

namespace {

using namespace zeroplan;

Request question(std::string_view model, std::int64_t gpus, std::string_view gpu) {
  return {.model = find_model(model).spec,
          .cluster = cluster_of(gpu, gpus),
          .runtime = load_runtime(Runtime::megatron, {})};
}

// Memory of every stage of one layout, all categories.
void estimate_layout(benchmark::State& state) {
  const Request request = question("llama3.1-405b", 16'384, "H100-80GB");
  const Problem problem =
      complete(request, {.tp = 8, .pp = state.range(0), .zero = ZeroStage::optimizer});
  const Evaluator evaluator(problem);
  for (auto _ : state) benchmark::DoNotOptimize(estimate(problem, evaluator));
  state.counters["evaluations/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(estimate_layout)->Arg(1)->Arg(8)->Arg(16)->Arg(64);

// The allocator of every stage that may be the worst, replayed, for a pipeline and for FSDP2.
void replay_layout(benchmark::State& state, Runtime runtime, LayoutChoice layout) {
  Request request = question("llama3-70b", 64, "H100-80GB");
  request.runtime = load_runtime(runtime, {});
  request.global_batch = 512;
  if (layout.pp > 1) request.vpp = 5;
  const Problem problem = complete(request, layout);
  const Evaluator evaluator(problem);
  for (auto _ : state) benchmark::DoNotOptimize(played_estimate(problem, evaluator));
}
BENCHMARK_CAPTURE(replay_layout,
                  interleaved,
                  Runtime::megatron,
                  {.tp = 2, .pp = 8, .zero = ZeroStage::optimizer})
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(replay_layout, fsdp2, Runtime::fsdp2, {.zero = ZeroStage::parameters})
    ->Unit(benchmark::kMillisecond);

void check_layout(benchmark::State& state) {
  const Request request = question("llama3.1-405b", 16'384, "H100-80GB");
  const Problem problem = complete(request, {.tp = 8, .pp = 16, .zero = ZeroStage::optimizer});
  for (auto _ : state) benchmark::DoNotOptimize(first_violation(problem));
}
BENCHMARK(check_layout);

void find_catalog_model(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(find_model("deepseek-ai/DeepSeek-V3"));
}
BENCHMARK(find_catalog_model);

// A whole `fit` without layout flags, the smallest GPU count included.
void fit_question(benchmark::State& state,
                  std::string_view model,
                  std::int64_t gpus,
                  std::string_view gpu) {
  for (auto _ : state) benchmark::DoNotOptimize(fit(question(model, gpus, gpu)));
}
BENCHMARK_CAPTURE(fit_question, qwen2 .5_72b_128, "qwen2.5-72b", 128, "A100-80GB")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fit_question, llama3 .1_405b_16384, "llama3.1-405b", 16'384, "H100-80GB")
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(fit_question, deepseek_v3_2048, "deepseek-v3", 2'048, "H800-80GB")
    ->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
