// Does a sweep count, and find, what asking about one layout after the other does? Loops over plain
// numbers stand here for the search's axes, its walk and its bounds; each layout is asked about as
// a person would, every field and setting given, of an Evaluator that remembers nothing.
#include <algorithm>
#include <cmath>

#include "cost_model/answer/estimate.hpp"
#include "cost_model/answer/step_time.hpp"
#include "cost_model/legality/legality.hpp"
#include "planner/sweep/search.hpp"
#include "tests/catch.hpp"
#include "tests/every_layout.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

struct Found {
  std::int64_t legal = 0;
  std::int64_t fitting = 0;
  struct Plan {
    double seconds;
    Bytes device;
    Problem problem;
  };
  std::vector<Plan> plans;  // a few of the fastest
};

void ask(const Request& r, Found& found) {
  constexpr std::size_t most = 256;
  const LayoutChoice choice{.tp = *r.tp,
                            .pp = *r.pp,
                            .cp = *r.cp,
                            .ep = *r.ep,
                            .etp = *r.etp,
                            .zero = *r.zero,
                            .recompute = *r.recompute};
  const Problem p = complete(r, choice);
  if (first_violation(p)) return;
  ++found.legal;
  const Evaluator evaluator(p);
  const Estimate needed = estimate(p, evaluator);
  if (needed.verdict != Verdict::fits) return;
  const double seconds = step_time(p, evaluator).seconds;
  if (!std::isfinite(seconds)) return;
  ++found.fitting;
  found.plans.push_back({seconds, needed.device(), p});
  if (found.plans.size() < 2 * most) return;
  std::ranges::nth_element(found.plans, found.plans.begin() + most, {}, &Found::Plan::seconds);
  found.plans.resize(most);
}

struct Space {
  Runtime runtime;
  std::string_view model;
  std::int64_t layers;  // of it
  std::string_view gpu;
  std::int64_t gpus;
  std::int64_t batch;
  bool by_layer = false;
  LayerCode layers_of = LayerCode::torchtitan;
};

void require_the_same(const Space& asked) {
  CAPTURE(name_of(asked.runtime), asked.model, asked.layers, asked.gpus, asked.batch);
  Request r{.model = find_model(asked.model).spec,
            .cluster = cluster_of(asked.gpu, asked.gpus),
            .runtime = load_runtime(asked.runtime, {}),
            .global_batch = asked.batch,
            .sequence_length = 2048};
  r.runtime.fsdp2.wrap_by_layer = asked.by_layer;
  r.runtime.fsdp2.layers = asked.layers_of;
  r.model.layers = asked.layers;
  if (!r.model.layer_kinds.empty())
    r.model.layer_kinds.resize(static_cast<std::size_t>(asked.layers));

  Found found;
  tests::each_layout(r, [&](const Request& given) { ask(given, found); });

  const SearchSpace space{.request = r};
  const SearchResult whole = search({space}, {.shapes = 1, .exhaustive = true});
  const SearchResult quick = search({space}, {.shapes = 1});
  REQUIRE(found.legal == whole.evaluated);
  REQUIRE(found.fitting == whole.feasible);
  std::ranges::sort(found.plans, {},
                    [](const Found::Plan& plan) { return std::pair(plan.seconds, plan.device); });
  const auto best = std::ranges::find_if(found.plans, [](const Found::Plan& plan) {
    return played_where_it_fits(plan.problem, Evaluator(plan.problem)).has_value();
  });
  REQUIRE((best == found.plans.end()) == whole.best.empty());
  for (const SearchResult* result : {&quick, &whole}) {
    if (whole.best.empty()) break;
    CAPTURE(result == &quick);
    REQUIRE(result->best.front().seconds == best->seconds);
    REQUIRE(result->best.front().device == best->device);
  }
}

}  // namespace

TEST_CASE("a sweep finds and counts what asking about each layout does", "[sweep][release]") {
  require_the_same(GENERATE(values<Space>({
      {Runtime::megatron, "llama3-8b", 3, "A100-40GB", 2, 4},
      {Runtime::fsdp2, "llama3-8b", 6, "A100-40GB", 4, 4},
      {Runtime::fsdp2, "llama3-8b", 5, "A100-40GB", 2, 4, true},
      {Runtime::fsdp2, "qwen3.5-9b", 6, "A100-40GB", 4, 4, false, LayerCode::huggingface},
      {Runtime::deepspeed, "llama3-8b", 8, "A100-40GB", 4, 4},
      {Runtime::nanotron, "llama3-8b", 12, "A100-40GB", 8, 16},
  })));
}

// Minutes: asked for by its name or tag alone.
TEST_CASE("the same of more spaces", "[.whole-spaces]") {
  require_the_same(GENERATE(values<Space>({
      {Runtime::megatron, "llama3-8b", 4, "A100-40GB", 4, 4},
      {Runtime::megatron, "llama3-8b", 9, "A100-40GB", 3, 6},
      {Runtime::megatron, "gpt3-13b", 6, "A100-80GB", 4, 4},
      {Runtime::megatron, "llama2-7b", 7, "V100-32GB", 4, 2},
      {Runtime::megatron, "mixtral-8x7b", 2, "A100-80GB", 4, 2},
      {Runtime::megatron, "deepseek-v2-lite", 4, "A100-40GB", 2, 2},
      {Runtime::megatron, "qwen2.5-7b", 5, "H100-80GB", 5, 5},
      {Runtime::fsdp2, "llama3-8b", 8, "A100-40GB", 8, 8},
      {Runtime::fsdp2, "llama3.2-1b", 6, "RTX4090", 6, 12},
      {Runtime::fsdp2, "mixtral-8x7b", 4, "A100-80GB", 4, 4},
      {Runtime::fsdp2, "deepseek-v2-lite", 5, "A100-40GB", 4, 4},
      {Runtime::fsdp2, "qwen2.5-7b", 12, "A100-40GB", 6, 6},
      {Runtime::fsdp2, "llama3-8b", 10, "A100-40GB", 4, 8, true},
      {Runtime::fsdp2, "mixtral-8x7b", 4, "A100-80GB", 4, 8, true},
      {Runtime::fsdp2, "deepseek-v2-lite", 6, "A100-40GB", 4, 4, true},
      {Runtime::fsdp2, "qwen2.5-7b", 12, "A100-40GB", 6, 12, true},
      {Runtime::deepspeed, "llama3-8b", 16, "A100-40GB", 8, 8},
      {Runtime::deepspeed, "gpt3-13b", 12, "A100-80GB", 6, 12},
      {Runtime::deepspeed, "mixtral-8x7b", 4, "A100-80GB", 4, 8},
      {Runtime::deepspeed, "qwen3.5-9b", 7, "A100-40GB", 8, 8},
      {Runtime::fsdp2, "qwen3-next-80b-a3b", 5, "A100-80GB", 8, 8, false, LayerCode::huggingface},
      {Runtime::fsdp2, "nemotron-3-nano-30b-a3b", 9, "A100-80GB", 8, 8, false,
       LayerCode::huggingface},
      {Runtime::deepspeed, "llama3.2-1b", 6, "V100-32GB", 4, 16},
      {Runtime::nanotron, "llama3-8b", 32, "A100-40GB", 16, 32},
      {Runtime::nanotron, "qwen2.5-7b", 12, "A100-40GB", 12, 24},
      {Runtime::nanotron, "llama3.2-1b", 16, "RTX4090", 8, 32},
      {Runtime::nanotron, "gpt3-13b", 10, "A100-80GB", 10, 20},
  })));
}
