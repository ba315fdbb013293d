// The story of a step is what the engine does: its calls, its bytes, its memory.
#include "cost_model/explain/story.hpp"

#include "cost_model/answer/step_time.hpp"
#include "tests/catch.hpp"
#include "tests/validator/tiny.hpp"
#include "validator/run.hpp"

using namespace zeroplan;
using namespace zeroplan::engine;

namespace {

Problem sixteen_layers(int zero, std::int64_t tp) {
  ModelSpec model = tests::tiny_llama();
  model.layers = 16;
  const Layout layout{.dp = 4 / tp, .tp = tp, .zero = static_cast<ZeroStage>(zero)};
  return tests::tiny_problem(model, layout, 2);
}

Traffic calls_told(const Story& story, std::string_view group) {
  Traffic sum;
  for (const StoryPhase& phase : story.phases) {
    CHECK(phase.calls.empty());  // the engine's all have their block
    for (const StoryScene& scene : phase.scenes) {
      for (const TimedLoad& call : scene.calls) {
        if (call.load.group.name != group) continue;
        sum[{call.load.collective, call.load.payload.count()}] += scene.blocks * call.load.calls;
      }
    }
  }
  return sum;
}

}  // namespace

TEST_CASE("a story tells what four ranks of the engine do, rank by rank") {
  const int zero = GENERATE(0, 1, 2, 3);
  const std::int64_t tp = GENERATE(1, 2);
  const Problem p = sixteen_layers(zero, tp);
  CAPTURE(zero, tp);
  const Evaluator evaluator(p);
  const Story told = story(p, evaluator, step_time(p, evaluator), 0);
  REQUIRE(told.micro_batches == micro_batches(p));

  Bytes highest, held;
  for (const NamedTensors& tensors : told.held) held += tensors.bytes;
  for (const StoryPhase& phase : told.phases) {
    for (const StoryScene& scene : phase.scenes) highest = std::max(highest, scene.highest);
  }
  CHECK(told.phases.back().after == held);

  RunOptions options;
  options.steps = 1;
  const RunReport run = run_on_host(p, options);
  REQUIRE(run.ranks.size() == 4);
  for (const RankReport& rank : run.ranks) {
    CAPTURE(rank.place.dp, rank.place.tp);
    CHECK(rank.peak.live.allocated() == highest);
    for (const GroupTraffic& group : rank.traffic) {
      CAPTURE(group.group);
      CHECK(calls_told(told, group.group) == group.traffic);
    }
  }
}

TEST_CASE("sixteen layers that do alike are one scene, and the second micro-batch as the first") {
  const Problem p = sixteen_layers(3, 1);
  const Evaluator evaluator(p);
  const Story told = story(p, evaluator, step_time(p, evaluator), 0);
  REQUIRE(told.phases.size() == 5);
  const std::vector<StoryScene>& forward = told.phases[0].scenes;
  REQUIRE(forward.size() == 3);
  CHECK(forward[1].first == "layer 0");
  CHECK(forward[1].last == "layer 15");
  CHECK(forward[1].blocks == 16);
  CHECK(told.phases[2].alike == std::size_t{0});
  CHECK(told.phases[3].alike == std::size_t{1});
  CHECK(told.phases[4].ends_step);
  REQUIRE(told.groups.size() == 1);
  CHECK(told.groups[0].members == std::vector<std::int64_t>{0, 1, 2, 3});
  CHECK(told.groups[0].link == "nvlink");
}

TEST_CASE("what each stage of ZeRO exchanges is what its reasons speak of") {
  const auto speaks = [](int zero, std::string_view words) {
    const Problem p = sixteen_layers(zero, 1);
    const Evaluator evaluator(p);
    const Story told = story(p, evaluator, step_time(p, evaluator), 0);
    return std::ranges::any_of(told.reasons, [&](const std::string& reason) {
      return reason.find(words) != std::string::npos;
    });
  };
  for (int zero = 0; zero < 4; ++zero) {
    CAPTURE(zero);
    CHECK(speaks(zero, "all-reduced") == (zero == 0));
    CHECK(speaks(zero, "reduce-scattered") == (zero > 0));
    CHECK(speaks(zero, "After the update") == (zero == 1 || zero == 2));
    CHECK(speaks(zero, "one unit at a time") == (zero == 3));
    CHECK(speaks(zero, "broadcasts a whole block") == (zero == 3));
  }
}
