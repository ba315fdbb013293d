// Which values of a field does a search try?
#include "planner/sweep/choices.hpp"

#include <algorithm>
#include <limits>

#include "cost_model/answer/estimate.hpp"
#include "cost_model/answer/step_time.hpp"
#include "cost_model/remember/evaluator.hpp"
#include "planner/sweep/search.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

using RuntimeValues = std::vector<std::pair<std::string, std::string>>;

SearchSpace space_of(std::string_view model,
                     std::int64_t gpus,
                     Runtime runtime = Runtime::megatron,
                     const RuntimeValues& set = {}) {
  SearchSpace space{.request = {.model = find_model(model).spec,
                                .cluster = cluster_of("H100-80GB", gpus),
                                .runtime = load_runtime(runtime, {set.begin(), set.end()})}};
  for (const auto& [key, value] : set) space.request.given_settings.push_back(key);
  return space;
}

// Whether some value of sequence parallelism cuts the products of `tp` ranks.
bool tries_overlap(const SearchSpace& space, std::int64_t tp) {
  Problem p = open_problem(space.request);
  p.layout.tp = tp;
  const Values values = choices(space, Field::sequence_parallel, p);
  return std::any_of(values.begin(), values.end(), [&](std::int64_t value) {
    set_value(p.layout, Field::sequence_parallel, value);
    derive_flags(space.request, p);
    REQUIRE(p.layout.tp_overlap == p.runtime.megatron.tp_comm_overlap);
    return p.layout.tp_overlap;
  });
}

std::vector<Schedule> tried_schedules(const SearchSpace& space, std::int64_t vpp) {
  Problem p = open_problem(space.request);
  p.layout.pp = 4;
  p.layout.vpp = vpp;
  std::vector<Schedule> list;
  for (const std::int64_t value : choices(space, Field::schedule, p)) {
    list.push_back(static_cast<Schedule>(value));
  }
  return list;
}

}  // namespace

TEST_CASE("where a runtime can, norms are split beside tensor parallelism", "[sweep]") {
  const auto may_be_split = [](Runtime runtime) {
    const SearchSpace space = space_of("llama3-8b", 16, runtime);
    Problem p = open_problem(space.request);
    p.layout.tp = 2;
    const Values values = choices(space, Field::sequence_parallel, p);
    return std::any_of(values.begin(), values.end(), [&](std::int64_t value) {
      set_value(p.layout, Field::sequence_parallel, value);
      return p.layout.sequence_parallel;
    });
  };
  CHECK(may_be_split(Runtime::megatron));
  CHECK(may_be_split(Runtime::fsdp2));
  CHECK(may_be_split(Runtime::nanotron));
  CHECK(!may_be_split(Runtime::deepspeed));
}

TEST_CASE("tensor-parallel collectives travel beside products where a node's links carry them",
          "[sweep]") {
  REQUIRE(tries_overlap(space_of("llama3-70b", 64), 4));
  REQUIRE(!tries_overlap(space_of("llama3-70b", 64), 1));
  REQUIRE(!tries_overlap(space_of("llama3-70b", 64), 16));
  REQUIRE(!tries_overlap(space_of("llama3-70b", 64, Runtime::fsdp2), 4));
  REQUIRE(!tries_overlap(
      space_of("llama3-70b", 64, Runtime::megatron, {{"tp_comm_overlap", "false"}}), 4));
  SearchSpace local = space_of("llama3-70b", 64);
  local.request.runtime.megatron.transformer_engine_version = 0;
  REQUIRE(!tries_overlap(local, 4));
}

TEST_CASE("a search tries the schedules that the runtime has", "[sweep]") {
  using enum Schedule;
  using List = std::vector<Schedule>;
  const auto with = [](const char* code) {
    return space_of("llama3-70b", 64, Runtime::megatron, {{"pipeline_code", code}});
  };
  REQUIRE(tried_schedules(space_of("llama3-70b", 64), 1) == List{one_f_one_b});
  REQUIRE(tried_schedules(space_of("llama3-70b", 64), 2) == List{interleaved});
  REQUIRE(tried_schedules(space_of("llama3-70b", 64, Runtime::fsdp2), 2) == List{interleaved});
  REQUIRE(tried_schedules(with("zero-bubble"), 1) == List{one_f_one_b, zb_h1, zb_h2});
  REQUIRE(tried_schedules(with("zero-bubble"), 2) == List{interleaved, zb_v});
  REQUIRE(tried_schedules(with("zero-bubble"), 5) == List{interleaved});
  REQUIRE(tried_schedules(with("dualpipe"), 1) == List{dualpipe});
}

// Of heads as large as several layers the best split is far from even.
TEST_CASE("no first and last stage is faster than those that a search tries", "[sweep]") {
  const auto [model, pp] = GENERATE(table<std::string_view, std::int64_t>({{"gemma2-2b", 2},
                                                                           {"gemma2-2b", 4},
                                                                           {"gemma3-1b", 2},
                                                                           {"gemma3-1b", 4},
                                                                           {"qwen2.5-0.5b", 4},
                                                                           {"gemma2-9b", 4},
                                                                           {"llama3.2-1b", 4},
                                                                           {"llama3-8b", 4}}));
  CAPTURE(model, pp);
  SearchSpace space = space_of(model, model == "gemma2-9b" ? 16 : 8);
  Request& r = space.request;
  r.tp = r.cp = r.vpp = r.micro_batch = 1;
  r.pp = pp;
  r.global_batch = 64;
  r.zero = ZeroStage::optimizer;
  r.recompute = Recompute::none;
  const SearchResult found = search({space}, {.shapes = 1, .front = false});
  REQUIRE(!found.best.empty());
  Layout layout = found.best.front().layout;

  const Evaluator evaluator(question_of(r));
  double best = std::numeric_limits<double>::infinity();
  for (layout.first_stage = 1; layout.first_stage < r.model.layers; ++layout.first_stage) {
    for (layout.last_stage = 1; layout.first_stage + layout.last_stage <= r.model.layers;
         ++layout.last_stage) {
      const Problem p = problem_of(r, layout);
      if (first_violation(p)) continue;
      if (worst_stage(p, evaluator).verdict != Verdict::fits) continue;
      const double seconds = step_seconds(p, evaluator);
      if (seconds < best && played_where_it_fits(p, evaluator)) best = seconds;
    }
  }
  REQUIRE(found.best.front().seconds <= best);
}
