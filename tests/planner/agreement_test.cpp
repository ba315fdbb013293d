// Whatever is asked, fit and sweep answer the same: verdict, plan, numbers, fewest GPUs, refusal.
#include <algorithm>
#include <random>

#include "planner/sweep/sweep.hpp"
#include "presets/catalog.hpp"
#include "presets/runtime.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"

using namespace zeroplan;

namespace {

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  template <class T>
  T one_of(std::initializer_list<T> values) {
    std::uniform_int_distribution<std::size_t> place(0, values.size() - 1);
    return *(values.begin() + place(random_));
  }
  bool rarely() { return one_of({1, 2, 3, 4, 5}) == 1; }

 private:
  std::mt19937 random_;
};

Request drawn(unsigned seed) {
  Draw draw(seed);
  const auto model = draw.one_of<std::string_view>({"llama3-8b", "llama3-70b", "gpt3-13b",
                                                    "gemma2-2b", "mixtral-8x7b", "bloom-7b1",
                                                    "qwen2.5-32b", "deepseek-v2-lite", "opt-125m"});
  const auto gpu =
      draw.one_of<std::string_view>({"H100-80GB", "A100-40GB", "V100-32GB", "B200", "RTX4090"});
  const auto gpus = draw.one_of<std::int64_t>({1, 2, 3, 4, 6, 8, 12, 16, 24, 32});
  const auto runtime = draw.one_of({Runtime::megatron, Runtime::megatron, Runtime::fsdp2,
                                    Runtime::deepspeed, Runtime::ddp, Runtime::nanotron});
  Request r{.model = find_model(model).spec,
            .cluster = cluster_of(gpu, gpus),
            .runtime = load_runtime(runtime, {})};
  if (draw.rarely()) r.sequence_length = draw.one_of<std::int64_t>({2048, 16384});
  if (draw.rarely()) r.global_batch = draw.one_of<std::int64_t>({8, 96, 512});
  if (draw.rarely()) r.tp = draw.one_of<std::int64_t>({1, 2, 8});
  if (draw.rarely()) r.pp = draw.one_of<std::int64_t>({1, 2, 4});
  if (draw.rarely())
    r.zero = draw.one_of(
        {ZeroStage::none, ZeroStage::optimizer, ZeroStage::gradients, ZeroStage::parameters});
  if (draw.rarely()) r.recompute = draw.one_of({Recompute::none, Recompute::full});
  if (draw.rarely()) r.optimizer = OptimizerKind::sgd;
  return r;
}

// The same with a layout given too, where nothing was: one that a search of the request tries.
Request with_layout(Request r, Draw& draw) {
  const auto give = [](auto& field, auto value) {
    if (!field) field = value;
  };
  using enum ZeroStage;
  const Choices& tried = choices_of(r);
  const bool whole = !tried.divides_model;
  give(r.tp, whole ? 1 : draw.one_of<std::int64_t>({1, 1, 2, 3, 4, 8}));
  give(r.pp, whole ? 1 : draw.one_of<std::int64_t>({1, 1, 2, 3, 4, 8}));
  give(r.cp, tried.cuts_context ? draw.one_of<std::int64_t>({1, 1, 1, 2, 4}) : 1);
  const bool experts = r.model.moe && tried.divides_experts;
  give(r.ep, experts ? draw.one_of<std::int64_t>({1, 2, 4, 8}) : 1);
  give(r.micro_batch, draw.one_of<std::int64_t>({1, 1, 2, 4, 8}));
  give(r.zero, draw.one_of({none, optimizer, gradients, parameters, parameters}));
  give(r.recompute, draw.one_of({Recompute::none, Recompute::full}));
  return r;
}

double seconds_a_token(const FitAnswer& answer) {
  const TrainingSpec& t = answer.problem.training;
  return answer.step.seconds / static_cast<double>(t.global_batch * t.sequence_length);
}

}  // namespace

TEST_CASE("fit and sweep give one answer to every question") {
  int fits = 0, refused = 0;
  for (int seed = 0; seed < tests::draws(120); ++seed) {
    const Request request = drawn(static_cast<unsigned>(seed));
    CAPTURE(seed, request.model.name, request.cluster.gpus, request.cluster.gpu.name,
            name_of(request.runtime.kind));
    const auto answered = fit(request);
    const SweepAnswer swept = sweep({.request = request, .top = 3});
    if (const auto* refusal = std::get_if<Refusal>(&answered)) {
      REQUIRE(swept.refusal.has_value());
      REQUIRE(swept.refusal->message == refusal->message);
      ++refused;
      continue;
    }
    REQUIRE_FALSE(swept.refusal.has_value());
    const auto& answer = std::get<FitAnswer>(answered);
    REQUIRE((answer.estimate.verdict == Verdict::does_not_fit) == swept.plans.empty());
    if (swept.plans.empty()) {
      REQUIRE(swept.nearest_fits.size() == answer.nearest_fits.size());
      continue;
    }
    ++fits;
    const FitAnswer& taken = swept.plans[swept.recommended].answer;
    REQUIRE(taken.problem.layout == answer.problem.layout);
    REQUIRE(taken.estimate.verdict == answer.estimate.verdict);
    REQUIRE(taken.estimate.device() == answer.estimate.device());
    REQUIRE(taken.step.seconds == answer.step.seconds);
    if (!answer.fewest_gpus) continue;
    const SweepAnswer few = sweep({.request = request, .objective = Objective::gpus, .top = 1});
    REQUIRE(few.gpu_counts == std::vector{*answer.fewest_gpus});
  }
  if (tests::sanitized) return;
  REQUIRE(fits > 30);
  REQUIRE(refused > 3);
}

// On GPUs with a little less memory than the stages need that the runtime is usually run with.
TEST_CASE("of a layout given but for ZeRO's stage fit and sweep say alike whether it fits") {
  int other_stage = 0;
  for (int seed = 0; seed < tests::draws(150); ++seed) {
    Request request = drawn(static_cast<unsigned>(seed));
    request.zero = {};
    Draw draw(static_cast<unsigned>(2000 + seed));
    Request given = with_layout(request, draw);
    given.zero = {};
    CAPTURE(seed, given.model.name, given.cluster.gpus, given.cluster.gpu.name,
            name_of(given.runtime.kind), *given.tp, *given.pp, *given.micro_batch);
    const auto roomy = fit(given);
    if (!std::holds_alternative<FitAnswer>(roomy)) continue;
    given.cluster.gpu.memory = std::get<FitAnswer>(roomy).estimate.device() - Bytes{gibi / 8};

    const auto answer = std::get<FitAnswer>(fit(given));
    const SweepAnswer swept = sweep({.request = given, .top = 1});
    REQUIRE((answer.estimate.verdict == Verdict::does_not_fit) == swept.plans.empty());
    if (swept.plans.empty()) continue;
    REQUIRE(answer.estimate.verdict == swept.plans.at(swept.recommended).answer.estimate.verdict);
    const auto usual = choices_of(given).stages;
    const ZeroStage taken = answer.problem.layout.zero;
    other_stage += std::find(usual.begin(), usual.end(), taken) == usual.end();
  }
  if (!tests::sanitized) CHECK(other_stage > 5);
}

TEST_CASE("no layout that fits is faster than what a sweep finds where its fields are open") {
  int fitted = 0;
  for (int seed = 0; seed < tests::draws(60); ++seed) {
    const Request request = drawn(static_cast<unsigned>(seed));
    CAPTURE(seed, request.model.name, request.cluster.gpus, request.cluster.gpu.name,
            name_of(request.runtime.kind));
    const SweepAnswer swept = sweep({.request = request, .top = 1});
    Draw draw(static_cast<unsigned>(1000 + seed));
    for (int i = 0; i < 12; ++i) {
      const auto answered = fit(with_layout(request, draw));
      const auto* answer = std::get_if<FitAnswer>(&answered);
      if (answer == nullptr || answer->estimate.verdict != Verdict::fits) continue;
      ++fitted;
      const Layout& l = answer->problem.layout;
      CAPTURE(i, l.tp, l.pp, l.cp, l.ep, l.micro_batch, static_cast<int>(l.zero));
      REQUIRE_FALSE(swept.plans.empty());
      REQUIRE(swept.plans.front().scored.seconds_per_token <= seconds_a_token(*answer));
    }
  }
  if (!tests::sanitized) REQUIRE(fitted > 30);
}
