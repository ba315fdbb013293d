#include "planner/sweep/floors.hpp"

#include <random>

#include "cost_model/estimate.hpp"
#include "cost_model/step_time.hpp"
#include "planner/sweep/enumeration.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

struct Question {
  Runtime runtime;
  std::string_view model;
  std::int64_t gpus;
};

SearchSpace space_of(const Question& q) {
  SearchSpace space{.request = {.model = find_model(q.model).spec,
                                .cluster = cluster_of("H100-80GB", q.gpus),
                                .runtime = load_runtime(q.runtime, {})}};
  space.request.global_batch = 96;
  return space;
}

const Question questions[] = {
    {Runtime::megatron, "llama3-8b", 32}, {Runtime::megatron, "mixtral-8x7b", 32},
    {Runtime::megatron, "gpt3-13b", 48},  {Runtime::megatron, "deepseek-v2-lite", 16},
    {Runtime::fsdp2, "llama3-8b", 32},    {Runtime::deepspeed, "llama3-8b", 32},
    {Runtime::nanotron, "llama3-8b", 16}, {Runtime::zero_paper, "llama3-8b", 16}};

std::vector<Layout> some_nodes(const SearchSpace& space, std::mt19937& random, std::size_t most) {
  std::vector<Layout> nodes;
  Enumeration all(space);
  all.nodes([&](const Problem& p) { nodes.push_back(p.layout); });
  std::shuffle(nodes.begin(), nodes.end(), random);
  nodes.resize(std::min(nodes.size(), most));
  return nodes;
}

}  // namespace

// Over every completion of random nodes.
TEST_CASE("no layout undercuts the floors of its node", "[sweep]") {
  for (const Question& q : questions) {
    const SearchSpace space = space_of(q);
    const Remembered remembered(space.request.model);
    Floors floors(space, remembered);
    std::mt19937 random(7);
    for (const Layout& layout : some_nodes(space, random, tests::draws(60))) {
      Problem node = open_problem(space.request);
      node.layout = layout;
      derive(space.request, node);
      const Bytes least = floors.memory(node);
      const double shortest = floors.time(with_least_recompute(space, node));
      Enumeration below(space);
      double group_shortest = 0;
      Bytes group_least;
      const auto enter = [&](const Problem& p) {
        group_shortest = floors.time(p);
        group_least = floors.memory(p);
        REQUIRE(shortest <= group_shortest);
        REQUIRE(least <= group_least);
        return true;
      };
      const auto visit = [&](const Problem& p) {
        if (random() % 4 != 0) return;
        CAPTURE(name_of(q.runtime), q.model, p.layout.dp, p.layout.tp, p.layout.pp, p.layout.vpp,
                p.layout.cp, p.layout.ep, p.layout.micro_batch, name_of(p.layout.zero),
                p.layout.hsdp, name_of(p.layout.recompute), p.layout.recompute_layers,
                p.layout.first_stage, name_of(p.layout.overlap));
        const double seconds = step_seconds(p, remembered);
        REQUIRE(group_shortest + update_floor(p, remembered) <= seconds);
        REQUIRE(group_least <= estimate(p, remembered).device());
      };
      below.points(layout, visit, enter);
    }
  }
}

TEST_CASE("a step's seconds are those of the whole step time", "[sweep]") {
  for (const Question& q : questions) {
    const SearchSpace space = space_of(q);
    const Remembered remembered(space.request.model);
    Enumeration all(space);
    std::mt19937 random(11);
    all.nodes([&](const Problem& p) {
      if (random() % 8 != 0) return;
      Problem at = p;
      at.layout.zero = static_cast<ZeroStage>(choices(space, Field::zero, p).back());
      if (first_violation(at)) return;
      CAPTURE(name_of(q.runtime), q.model, p.layout.tp, p.layout.pp, p.layout.vpp);
      REQUIRE(step_seconds(at, remembered) == step_time(at, remembered).seconds);
    });
  }
}

TEST_CASE("the stages that can be the worst show the worst stage", "[sweep]") {
  for (const Question& q : questions) {
    const SearchSpace space = space_of(q);
    const Remembered remembered(space.request.model);
    std::mt19937 random(3);
    for (const Layout& layout : some_nodes(space, random, tests::draws(150))) {
      Enumeration below(space);
      below.points(layout, [&](const Problem& p) {
        if (random() % 8 != 0) return;
        CAPTURE(name_of(q.runtime), q.model, p.layout.dp, p.layout.tp, p.layout.pp, p.layout.vpp,
                name_of(p.layout.schedule), p.layout.micro_batch, name_of(p.layout.zero),
                name_of(p.layout.recompute));
        const Estimate whole = estimate(p, remembered);
        const WorstStage quick = worst_stage(p, remembered);
        REQUIRE(quick.device == whole.device());
        REQUIRE(quick.verdict == whole.verdict);
        REQUIRE(static_cast<std::int64_t>(quick.stage) == whole.peak().stage);
      });
    }
  }
}
