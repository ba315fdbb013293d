// How fast is a search? Evaluations per second on one core, and whole searches.
#include <benchmark/benchmark.h>

#include <optional>

#include "cost_model/answer/estimate.hpp"
#include "cost_model/answer/step_time.hpp"
#include "planner/sweep/search.hpp"
#include "planner/sweep/worst_stage_cache.hpp"
#include "presets/catalog.hpp"
#include "presets/runtime.hpp"

namespace {

using namespace zeroplan;

SearchSpace space_of(std::string_view model,
                     std::int64_t gpus,
                     std::string_view gpu,
                     std::int64_t sequence,
                     std::int64_t batch) {
  SearchSpace space{.request = {.model = find_model(model).spec,
                                .cluster = cluster_of(gpu, gpus),
                                .runtime = load_runtime(Runtime::megatron, {})}};
  space.request.sequence_length = sequence;
  space.request.global_batch = batch;
  return space;
}

SearchSpace llama_405b() {
  return space_of("llama3.1-405b", 16'384, "H100-80GB", 8192, 2048);
}

// Some of all shapes, at one pp (0: any).
std::vector<Layout> some_shapes(const SearchSpace& space, std::int64_t pp) {
  std::vector<Layout> shapes;
  Enumeration(space).all(shape_depth, [&](const Problem& p) {
    if (pp == 0 || p.layout.pp == pp) shapes.push_back(p.layout);
  });
  constexpr std::size_t some = 24;
  const std::size_t step = std::max<std::size_t>(1, shapes.size() / some);
  std::vector<Layout> list;
  for (std::size_t i = 0; i < shapes.size(); i += step) list.push_back(shapes[i]);
  return list;
}

// All points below shapes as an exhaustive search meets them: with walking there, and with what is
// made once for many of them.
template <class Evaluate, class EndGroup>
void evaluate_points(benchmark::State& state, Evaluate&& evaluate, EndGroup&& end_group) {
  const SearchSpace space = llama_405b();
  const std::vector<Layout> shapes = some_shapes(space, state.range(0));
  const Evaluator evaluator(question_of(space.request));
  Enumeration points(space);
  std::optional<LayoutPieces> known;
  WorstStageCache weighing;
  const auto enter = [&](std::size_t depth, const Problem& p) {
    if (depth != group_depth) return true;
    known.emplace(evaluator.pieces(p));
    weighing.forget();
    return true;
  };
  std::int64_t count = 0;
  const auto visit = [&](const Problem&) {
    const PlanPoint point = known->point();
    evaluate(weighing, point);
    ++count;
  };
  for (auto _ : state) {
    for (const Layout& shape : shapes) {
      evaluator.trim();
      points.below(shape, shape_depth, point_depth,
                   {visit, enter, [&](const Problem&) { end_group(); }});
    }
  }
  state.counters["evaluations/s"] =
      benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsRate);
}

// Memory of every stage that can be the worst, and the verdict.
void memory_of_points(benchmark::State& state) {
  evaluate_points(
      state,
      [](WorstStageCache& weighing, const PlanPoint& point) {
        benchmark::DoNotOptimize(weighing.find_or_make(point));
      },
      [] {});
}
BENCHMARK(memory_of_points)->Arg(0)->Arg(16)->Arg(64)->Unit(benchmark::kMillisecond);

// The same with communication and step time.
void memory_and_time_of_points(benchmark::State& state) {
  StepLanes steps;
  evaluate_points(
      state,
      [&](WorstStageCache& weighing, const PlanPoint& point) {
        benchmark::DoNotOptimize(weighing.find_or_make(point));
        steps.add(point);
      },
      [&] {
        benchmark::DoNotOptimize(steps.seconds());
        steps.clear();
      });
}
BENCHMARK(memory_and_time_of_points)->Arg(0)->Arg(16)->Arg(64)->Unit(benchmark::kMillisecond);

// The ten best; the arguments are threads and whether nothing is bounded.
void whole_search(benchmark::State& state, const SearchSpace& space) {
  const SearchSettings settings{.front = false,
                                .exhaustive = state.range(1) != 0,
                                .threads = static_cast<std::size_t>(state.range(0))};
  SearchResult result;
  for (auto _ : state) result = search({space}, settings);
  state.counters["layouts"] = static_cast<double>(result.points);
  state.counters["evaluated"] = static_cast<double>(result.evaluated);
  state.counters["evaluations/s"] = benchmark::Counter(
      static_cast<double>(result.evaluated), benchmark::Counter::kIsIterationInvariantRate);
}
void each_way(benchmark::internal::Benchmark* b) {
  b->Args({1, 0})
      ->Args({2, 0})
      ->Args({1, 1})
      ->Args({2, 1})
      ->Unit(benchmark::kMillisecond)
      ->UseRealTime();
  b->Iterations(1);
}
BENCHMARK_CAPTURE(whole_search,
                  gpt3_175b_4096,
                  space_of("gpt3-175b", 4096, "A100-80GB", 2048, 4096))
    ->Apply(each_way);
BENCHMARK_CAPTURE(whole_search, llama_405b_16384, llama_405b())->Apply(each_way);
BENCHMARK_CAPTURE(whole_search,
                  deepseek_v3_2048,
                  space_of("deepseek-v3", 2048, "H800-80GB", 4096, 15'360))
    ->Args({1, 0})
    ->Args({2, 0})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime()
    ->Iterations(1);

}  // namespace
