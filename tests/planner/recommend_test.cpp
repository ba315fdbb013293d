// What is recommended is as fast as the fastest, but for the tie, and nothing in it is simpler.
#include "planner/recommend.hpp"

#include <limits>

#include "cost_model/answer/step_time.hpp"
#include "planner/fit.hpp"
#include "planner/sweep/sweep.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

struct Asked {
  std::string_view model;
  std::int64_t gpus;
  std::string_view gpu;
  Runtime runtime;
  std::int64_t sequence = 4096;
};

Request request_of(const Asked& q) {
  Request r{.model = find_model(q.model).spec,
            .cluster = cluster_of(q.gpu, q.gpus),
            .runtime = load_runtime(q.runtime, {})};
  r.sequence_length = q.sequence;
  return r;
}

// Those of first users, and of every kind of model and runtime; some fit nowhere.
const Asked questions[] = {
    {"llama3-8b", 8, "H100-80GB", Runtime::megatron},
    {"llama3-8b", 8, "H100-80GB", Runtime::fsdp2},
    {"llama3-8b", 8, "A100-40GB", Runtime::deepspeed},
    {"llama3-8b", 16, "A100-40GB", Runtime::megatron},
    {"llama3-8b", 8, "A100-40GB", Runtime::ddp},
    {"llama3-8b", 8, "H100-80GB", Runtime::nanotron},
    {"llama3-8b", 4, "H200", Runtime::megatron, 8192},
    {"llama3-8b", 32, "H100-80GB", Runtime::megatron, 131072},
    {"llama2-7b", 4, "RTX4090", Runtime::deepspeed},
    {"llama2-7b", 4, "RTX4090", Runtime::megatron},
    {"llama2-7b", 4, "RTX4090", Runtime::fsdp2, 2048},
    {"llama2-7b", 8, "A100-80GB", Runtime::fsdp2},
    {"llama3.2-1b", 8, "RTX4090", Runtime::fsdp2},
    {"llama3.2-1b", 1, "RTX4090", Runtime::megatron},
    {"llama3.2-1b", 8, "RTX4090", Runtime::ddp},
    {"llama3-70b", 8, "H100-80GB", Runtime::megatron},
    {"llama3-70b", 8, "H100-80GB", Runtime::deepspeed},
    {"llama3-70b", 37, "H100-80GB", Runtime::megatron},
    {"llama3-70b", 16, "H200", Runtime::fsdp2},
    {"qwen2.5-7b", 8, "A100-80GB", Runtime::megatron},
    {"qwen2.5-32b", 32, "B200", Runtime::megatron},
    {"qwen3-30b-a3b", 16, "H100-80GB", Runtime::megatron},
    {"mixtral-8x7b", 64, "H100-80GB", Runtime::megatron},
    {"mixtral-8x7b", 16, "H100-80GB", Runtime::fsdp2},
    {"deepseek-v2-lite", 8, "A100-80GB", Runtime::megatron},
    {"gpt3-13b", 16, "V100-32GB", Runtime::megatron, 2048},
    {"gpt3-13b", 16, "V100-32GB", Runtime::deepspeed, 2048},
    {"gpt3-175b", 256, "A100-80GB", Runtime::megatron, 2048},
    {"bloom-7b1", 8, "V100-32GB", Runtime::nanotron, 2048},
    {"llama-13b", 8, "A100-80GB", Runtime::zeroplan},
};

double seconds_a_token(const Problem& p, double seconds) {
  return seconds / static_cast<double>(p.training.global_batch * p.training.sequence_length);
}

}  // namespace

TEST_CASE("fit is within the tie of the fastest that a sweep finds, and says no where it does",
          "[recommend][release]") {
  int with_plan = 0;
  for (const Asked& q : questions) {
    CAPTURE(q.model, q.gpus, q.gpu, name_of(q.runtime), q.sequence);
    const Request request = request_of(q);
    const SearchResult swept = search({{.request = request}}, {.shapes = 1, .front = false});
    const auto answered = fit(request);
    REQUIRE(std::holds_alternative<FitAnswer>(answered));
    const auto& answer = std::get<FitAnswer>(answered);
    REQUIRE((answer.estimate.verdict == Verdict::fits) == !swept.best.empty());
    REQUIRE(answer.fastest.has_value() == !swept.best.empty());
    if (swept.best.empty()) continue;
    ++with_plan;
    const double fastest = swept.best.front().seconds_per_token;
    const double taken = seconds_a_token(answer.problem, answer.step.seconds);
    REQUIRE(taken <= (1 + default_tie) * fastest * (1 + 1e-9));
    REQUIRE(answer.fastest->problem.layout == swept.best.front().layout);
  }
  REQUIRE(with_plan > 20);
}

// Every point of the space, one after another.
TEST_CASE("of what ties with the fastest nothing is simpler, and nothing as simple is roomier",
          "[recommend]") {
  const auto [runtime, model, gpus] = GENERATE(
      table<Runtime, std::string_view, std::int64_t>({{Runtime::megatron, "llama3-8b", 4},
                                                      {Runtime::megatron, "deepseek-v2-lite", 4},
                                                      {Runtime::fsdp2, "llama3-8b", 8},
                                                      {Runtime::deepspeed, "llama3-8b", 8}}));
  CAPTURE(name_of(runtime), model, gpus);
  Request request = request_of({model, gpus, "H100-80GB", runtime});
  request.global_batch = 32;
  if (request.model.moe) request.sequence_parallel = true;  // half the space, which is large
  const SearchSpace space{.request = request};
  const double tie = 0.1;
  const auto taken = recommend(space, tie);
  REQUIRE(taken.has_value());
  const double slowest = (1 + tie) * taken->fastest.plan.seconds_per_token;
  REQUIRE(taken->plan.plan.seconds_per_token <= slowest);

  const Evaluator evaluator(question_of(request));
  const SimplicityOf simplicity(request);
  const auto value = [&](const Problem& p, Bytes device) {
    return std::pair(simplicity(p).rank(), device);
  };
  const auto least = value(problem_of(request, taken->plan.plan.layout), taken->plan.plan.device);
  std::size_t simpler = 0;
  Enumeration(space).all(point_depth, [&](const Problem& p) {
    if (simplicity(p).rank() > least.first) return;
    const WorstStage worst = worst_stage(p, evaluator);
    if (worst.verdict != Verdict::fits || value(p, worst.device) >= least) return;
    if (seconds_a_token(p, step_seconds(p, evaluator)) > slowest) return;
    simpler += played_where_it_fits(p, evaluator).has_value();
  });
  REQUIRE(simpler == 0);
}

// The same of each family, with as much time as the fastest of all or the family's own allows.
TEST_CASE("of a family nothing that is fast enough is simpler than what a sweep lists",
          "[recommend]") {
  const auto [runtime, model, gpus] = GENERATE(table<Runtime, std::string_view, std::int64_t>(
      {{Runtime::megatron, "llama3-8b", 4}, {Runtime::fsdp2, "llama3-8b", 8}}));
  CAPTURE(name_of(runtime), model, gpus);
  Request request = request_of({model, gpus, "H100-80GB", runtime});
  request.global_batch = 32;
  const SearchSpace space{.request = request};
  const double tie = 0.1;
  const SearchResult found =
      search({space}, {.shapes = 6, .kin = Kin::family, .front = false, .tie = tie});
  REQUIRE(found.simplest_of_each.size() == found.best.size());
  REQUIRE(found.best.size() > 1);
  const Evaluator evaluator(question_of(request));
  const SimplicityOf simplicity(request);
  const double fastest = found.best.front().seconds_per_token;
  for (std::size_t i = 0; i < found.best.size(); ++i) {
    const double own = found.best[i].seconds_per_token;
    const double slowest = (1 + tie) * (own <= (1 + tie) * fastest ? fastest : own);
    const Scored& taken = found.simplest_of_each[i].plan;
    REQUIRE(same_family(taken, found.best[i]));
    REQUIRE(taken.seconds_per_token <= slowest);
    const auto least =
        std::pair(simplicity(problem_of(request, taken.layout)).rank(), taken.device);
    std::size_t simpler = 0;
    Enumeration(space).all(point_depth, [&](const Problem& p) {
      const std::int64_t rank = simplicity(p).rank();
      const Scored scored{.layout = p.layout, .gpus = p.cluster.gpus};
      if (rank > least.first || !same_family(scored, taken)) return;
      const WorstStage worst = worst_stage(p, evaluator);
      if (worst.verdict != Verdict::fits || std::pair(rank, worst.device) >= least) return;
      if (seconds_a_token(p, step_seconds(p, evaluator)) > slowest) return;
      simpler += played_where_it_fits(p, evaluator).has_value();
    });
    REQUIRE(simpler == 0);
  }
}

TEST_CASE("no tie recommends the fastest", "[recommend]") {
  const Request request = request_of({"qwen2.5-32b", 32, "B200", Runtime::megatron});
  const auto fastest = recommend({.request = request}, 0);
  const auto simple = recommend({.request = request}, default_tie);
  REQUIRE(fastest->plan.plan.seconds_per_token == fastest->fastest.plan.seconds_per_token);
  REQUIRE(same_plan(fastest->fastest.plan, simple->fastest.plan));
  const SimplicityOf simplicity(request);
  const auto rank = [&](const Recommendation& r) {
    return simplicity(problem_of(request, r.plan.plan.layout)).rank();
  };
  REQUIRE(rank(*simple) < rank(*fastest));
}

TEST_CASE("a layout given in full is answered as it is given, one given in part is completed",
          "[recommend]") {
  Request request = request_of({"llama3-8b", 8, "H100-80GB", Runtime::megatron});
  REQUIRE(leaves_layout_open(request));
  request.tp = 2;
  request.pp = 1;
  request.recompute = Recompute::none;
  REQUIRE(leaves_layout_open(request));
  const auto part = std::get<FitAnswer>(fit(request));
  REQUIRE(part.problem.layout.tp == 2);
  REQUIRE(part.fastest.has_value());
  request.micro_batch = 2;
  REQUIRE(!leaves_layout_open(request));
  const auto whole = std::get<FitAnswer>(fit(request));
  REQUIRE(!whole.fastest.has_value());
  REQUIRE(whole.problem.layout.micro_batch == 2);
  REQUIRE(whole.problem.layout.cp == 1);
  REQUIRE(whole.problem.layout.overlap == Overlap::as_set);
}

// Megatron's custom FSDP divides what its distributed optimizer does not.
TEST_CASE(
    "a layout given but for ZeRO's stage is answered under another where the usual one is not "
    "enough",
    "[recommend]") {
  Request request = request_of({"llama3-70b", 32, "A100-80GB", Runtime::megatron});
  request.tp = 4;
  request.pp = 1;
  request.micro_batch = 8;
  request.recompute = Recompute::full;
  REQUIRE(leaves_stage_open(request));
  const auto answer = std::get<FitAnswer>(fit(request));
  CHECK(answer.estimate.verdict == Verdict::fits);
  CHECK(answer.problem.layout.zero > ZeroStage::optimizer);
  CHECK(some_layout_fits(request));
  const SweepAnswer swept = sweep({.request = request});
  CHECK(swept.plans.at(swept.recommended).answer.problem.layout == answer.problem.layout);

  SECTION("and under the usual one where it is") {
    request.pp = 4;
    CHECK(std::get<FitAnswer>(fit(request)).problem.layout.zero == ZeroStage::optimizer);
  }
  SECTION("not where a stage is asked for") {
    request.zero = ZeroStage::optimizer;
    CHECK_FALSE(leaves_stage_open(request));
    CHECK(std::get<FitAnswer>(fit(request)).estimate.verdict == Verdict::does_not_fit);
  }
}

TEST_CASE("a sweep recommends what fit answers, and lists a family once", "[recommend]") {
  const Asked question = GENERATE(Asked{"llama3-8b", 8, "H100-80GB", Runtime::megatron},
                                  Asked{"llama2-7b", 4, "RTX4090", Runtime::deepspeed},
                                  Asked{"llama3-8b", 8, "H100-80GB", Runtime::fsdp2});
  CAPTURE(question.model, name_of(question.runtime));
  const Request request = request_of(question);
  const auto answer = std::get<FitAnswer>(fit(request));
  for (const bool all : {false, true}) {
    const SweepAnswer swept = sweep({.request = request, .all = all});
    const Plan& taken = swept.plans.at(swept.recommended);
    REQUIRE(taken.answer.problem.layout == answer.problem.layout);
    REQUIRE(taken.answer.estimate.device() == answer.estimate.device());
    REQUIRE(taken.equal);
    REQUIRE(swept.plans.front().answer.problem.layout == answer.fastest->problem.layout);
    if (all) continue;
    // Beside the fastest there is one of each.
    for (std::size_t i = 1; i < swept.plans.size(); ++i) {
      for (std::size_t k = i + 1; k < swept.plans.size(); ++k) {
        REQUIRE(!same_family(swept.plans[i].scored, swept.plans[k].scored));
      }
    }
  }
}

// GPUs with just too little memory for the whole band of any layout.
TEST_CASE("where nothing fits with its whole band, what needs least is the answer of both",
          "[recommend]") {
  Request request = request_of({"llama3-8b", 2, "H100-80GB", Runtime::megatron});
  const auto least = least_memory({.request = request});
  REQUIRE(least.has_value());
  request.cluster.gpu.memory = least->played.device() + Bytes{gibi / 100};

  const auto tight = std::get<FitAnswer>(fit(request));
  REQUIRE(tight.estimate.verdict == Verdict::tight);
  const SweepAnswer swept = sweep({.request = request});
  REQUIRE(swept.plans.size() == 1);
  REQUIRE(swept.plans.front().answer.estimate.verdict == Verdict::tight);
  REQUIRE(swept.plans.front().answer.problem.layout == tight.problem.layout);

  request.cluster.gpu.memory = Bytes{least->played.device().count() / 2};
  const auto no = std::get<FitAnswer>(fit(request));
  REQUIRE(no.estimate.verdict == Verdict::does_not_fit);
  REQUIRE(no.estimate.device() <= least->played.device());
  REQUIRE(sweep({.request = request}).plans.empty());
}

// Of a layout that is given but for one thing.
TEST_CASE("a layout is open while one of its choices is") {
  const auto open = [](auto left) {
    Request r = request_of({"llama3-8b", 8, "H100-80GB", Runtime::megatron});
    r.tp = 2, r.pp = 2, r.micro_batch = 1;
    r.zero = ZeroStage::optimizer;
    r.recompute = Recompute::none;
    left(r);
    return leaves_layout_open(r);
  };
  CHECK_FALSE(open([](Request&) {}));
  CHECK(open([](Request& r) { r.tp = {}; }));
  CHECK(open([](Request& r) { r.pp = {}; }));
  CHECK(open([](Request& r) { r.recompute = {}; }));
  CHECK(open([](Request& r) { r.micro_batch = {}; }));
}
