#include "planner/sweep/lower_bounds.hpp"

#include <random>

#include "cost_model/answer/estimate.hpp"
#include "cost_model/answer/step_time.hpp"
#include "cost_model/pipeline/rounds.hpp"
#include "planner/sweep/shape_search.hpp"
#include "planner/sweep/sharding_family.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

struct Asked {
  Runtime runtime;
  std::string_view model;
  std::int64_t gpus;
  std::int64_t layers = 0;  // so many, each wrapped by itself; 0: the model's, all alike
  std::optional<Recompute> recompute = {};
};

SearchSpace space_of(const Asked& q) {
  SearchSpace space{.request = {.model = find_model(q.model).spec,
                                .cluster = cluster_of("H100-80GB", q.gpus),
                                .runtime = load_runtime(q.runtime, {})}};
  space.request.global_batch = 96;
  space.request.recompute = q.recompute;
  if (q.layers > 0) {
    ModelSpec& model = space.request.model;
    model.layers = q.layers;
    if (!model.layer_kinds.empty()) model.layer_kinds.resize(static_cast<std::size_t>(q.layers));
    space.request.runtime.fsdp2.wrap_by_layer = true;
  }
  return space;
}

const Asked questions[] = {{Runtime::megatron, "llama3-8b", 32},
                           {Runtime::megatron, "mixtral-8x7b", 32},
                           {Runtime::megatron, "gpt3-13b", 48},
                           {Runtime::megatron, "deepseek-v2-lite", 16},
                           {Runtime::megatron, "megatron-3.6b", 32},  // 32 chunks of 30 layers
                           {Runtime::megatron, "mixtral-8x7b", 32, 0, Recompute::selective},
                           {Runtime::fsdp2, "llama3-8b", 32},
                           {Runtime::fsdp2, "mixtral-8x7b", 32},
                           {Runtime::fsdp2, "llama3-8b", 8, 6},
                           {Runtime::fsdp2, "deepseek-v2-lite", 8, 5},
                           {Runtime::fsdp2, "llama3.2-1b", 16},
                           {Runtime::deepspeed, "llama3-8b", 32},
                           {Runtime::nanotron, "llama3-8b", 16},
                           {Runtime::zero_paper, "llama3-8b", 16}};

std::vector<Layout> some_nodes(const SearchSpace& space, std::mt19937& random, std::size_t most) {
  std::vector<Layout> nodes;
  Enumeration all(space);
  all.all(node_depth, [&](const Problem& p) { nodes.push_back(p.layout); });
  std::shuffle(nodes.begin(), nodes.end(), random);
  nodes.resize(std::min(nodes.size(), most));
  return nodes;
}

}  // namespace

// Over every completion of random nodes.
TEST_CASE("no layout undercuts the bounds of its node", "[sweep]") {
  std::size_t weighed = 0;  // of kinds of recompute
  for (const Asked& q : questions) {
    const SearchSpace space = space_of(q);
    const Evaluator evaluator(question_of(space.request));
    LowerBounds bounds(space, evaluator);
    std::mt19937 random(7);
    for (const Layout& layout : some_nodes(space, random, tests::draws(50))) {
      Problem node = open_problem(space.request);
      node.layout = layout;
      derive(space.request, node);
      Problem pass = node;
      for (const Field field : {Field::recompute, Field::recompute_modules}) {
        set_value(pass.layout, field, 0);
      }
      derive(space.request, pass);
      const Repeating what = repeating_of(layout);
      const Bytes least = bounds.memory(node);
      const double shortest = bounds.node_time(node);
      Enumeration below(space);
      double group_shortest = 0;
      double group_passes = 0;
      Bytes group_least;
      Bytes family_least;
      Bytes leanest;
      const auto enter = [&](std::size_t depth, const Problem& p) {
        if (depth == group_depth) {
          group_shortest = bounds.group_time(p);
          group_least = bounds.group_memory(p);
          REQUIRE(shortest <= group_shortest);
          REQUIRE(least <= group_least);
          REQUIRE(bounds.memory(p) <= group_least);
          if (q.runtime == Runtime::megatron) {
            const std::int64_t k = p.layout.recompute_layers;
            const std::int64_t number = k == 0 ? every_layer : k;
            for (const RepeatedRange& range : {RepeatedRange{number, number},
                                               {1, number},
                                               {number, every_layer},
                                               {1, every_layer}}) {
              CAPTURE(range.fewest, range.most, name_of(p.layout.recompute));
              const Bytes repeating = bounds.repeating_memory(pass, what, range);
              REQUIRE(repeating <= group_least);
              REQUIRE(repeating == bounds.repeating_memory(p, what, range));
              if (what == Repeating::parts || what == Repeating::mlp) {
                REQUIRE(bounds.memory_beside_parts(pass, what) <= repeating);
              }
              REQUIRE(bounds.repeating_time(pass, what, range) <= (1 + 1e-12) * group_shortest);
            }
            ++weighed;
          }
          group_passes = passes_seconds(evaluator.pieces(p));
          REQUIRE((1 - continued_error(p)) * group_shortest <= (1 + 1e-8) * group_passes);
        } else if (depth == family_depth) {
          family_least = worst_stage(p, evaluator).device - padding_of_buffers(p);
          leanest = Bytes{};
          Problem lean = p;
          for (const Sharding& exchange : leanest_of_family(space, lean, evaluator)) {
            set_sharding(lean.layout, exchange);
            derive_flags(space.request, lean);
            const Bytes device = worst_stage(lean, evaluator).device;
            leanest = leanest == Bytes{} ? device : std::min(leanest, device);
          }
        }
        return true;
      };
      const auto visit = [&](const Problem& p) {
        if (random() % 4 != 0) return;
        CAPTURE(name_of(q.runtime), q.model, p.layout.dp, p.layout.tp, p.layout.pp, p.layout.vpp,
                p.layout.cp, p.layout.ep, p.layout.micro_batch, name_of(p.layout.zero),
                p.layout.hsdp, name_of(p.layout.recompute), p.layout.recompute_layers,
                p.layout.first_stage, name_of(p.layout.overlap));
        const double seconds = step_seconds(p, evaluator);
        for (const double passes : {0.0, group_shortest, group_passes}) {
          REQUIRE(point_time(evaluator.pieces(p).point(), passes) <= seconds);
        }
        REQUIRE(group_least <= estimate(p, evaluator).device());
        const Bytes device = worst_stage(p, evaluator).device;
        REQUIRE(bounds.memory(evaluator.pieces(p).point()) <= device);
        REQUIRE(bounds.states_memory(p) <= device);
        if (q.runtime == Runtime::fsdp2) {
          REQUIRE(leanest <= device);
        }
        if (q.runtime == Runtime::megatron) {
          REQUIRE(family_least <= estimate(p, evaluator).device());
        }
      };
      below.below(layout, node_depth, point_depth, {visit, enter});
    }
  }
  REQUIRE(weighed > tests::draws(100));
}

// A node whose layers repeat whole has a group for each number of them.
TEST_CASE("no number of repeated layers needs less than what any number does", "[sweep]") {
  std::size_t pairs = 0;
  std::size_t tight = 0;  // within 2 % of the least
  for (const Asked& q : questions) {
    if (q.runtime != Runtime::megatron) continue;
    const SearchSpace space = space_of(q);
    const Evaluator evaluator(question_of(space.request));
    LowerBounds bounds(space, evaluator);
    std::mt19937 random(11);
    std::vector<Layout> nodes = some_nodes(space, random, std::size_t(-1));
    std::erase_if(nodes, [](const Layout& l) { return l.recompute != Recompute::full; });
    nodes.resize(std::min(nodes.size(), static_cast<std::size_t>(tests::draws(60))));
    for (const Layout& layout : nodes) {
      struct Least {
        Bytes of_any, of_one;
        std::size_t groups = 0;
      };
      std::array<Least, 2> least;  // by selective_rest
      const auto enter = [&](std::size_t depth, const Problem& p) {
        if (depth != group_depth) return true;
        auto& [of_any, of_one, groups] = least[p.layout.selective_rest ? 1 : 0];
        of_any = std::max(of_any, bounds.memory_of_any_number(p));
        const Bytes own = bounds.group_memory(p);
        of_one = groups == 0 ? own : std::min(of_one, own);
        ++groups;
        return false;
      };
      Enumeration below(space);
      below.below(layout, node_depth, point_depth, {[](const Problem&) {}, enter});
      for (const auto& [of_any, of_one, groups] : least) {
        if (groups == 0) continue;
        CAPTURE(q.model, layout.tp, layout.pp, layout.vpp, layout.cp, layout.ep, layout.micro_batch,
                name_of(layout.schedule), groups);
        REQUIRE(of_any <= of_one);
        ++pairs;
        tight += 1.02 * static_cast<double>(of_any.count()) >= static_cast<double>(of_one.count());
      }
    }
  }
  CAPTURE(pairs, tight);
  REQUIRE(pairs > tests::draws(100));
  REQUIRE(2 * tight > pairs);
}

// What a search sorts by.
TEST_CASE("no node undercuts the bound of its shape", "[sweep]") {
  for (const Asked& q : questions) {
    const SearchSpace space = space_of(q);
    std::vector<Layout> shapes;
    Enumeration(space).all(shape_depth, [&](const Problem& p) { shapes.push_back(p.layout); });
    std::mt19937 random(5);
    std::shuffle(shapes.begin(), shapes.end(), random);
    shapes.resize(std::min<std::size_t>(shapes.size(), tests::draws(200)));
    const std::vector<SearchSpace> spaces{space};
    ShapeSearch worker(spaces);
    const Evaluator evaluator(question_of(space.request));
    LowerBounds bounds(space, evaluator);
    for (const Layout& shape : shapes) {
      const ShapeBound bound = worker.bound(0, shape, true);
      const ShapeBound quick = worker.bound(0, shape, false);
      REQUIRE(quick.seconds_per_token <= bound.seconds_per_token);
      REQUIRE(quick.device <= std::max(bound.device, space.request.cluster.gpu.memory));
      const auto visit = [&](const Problem& p) {
        const auto tokens =
            static_cast<double>(p.training.global_batch * p.training.sequence_length);
        CAPTURE(name_of(q.runtime), q.model, p.layout.tp, p.layout.pp, p.layout.vpp);
        REQUIRE(bound.seconds_per_token * tokens <= (1 + 1e-12) * bounds.node_time(p));
        REQUIRE(bound.device <= bounds.memory(p));
      };
      Enumeration(space).below(shape, shape_depth, node_depth, {visit});
    }
  }
}

// Those with equal degrees one after the other, as a search asks: of DeepSpeed both under a
// pipeline, which runs other layers, and without.
TEST_CASE("a bound does not depend on what was asked before", "[sweep]") {
  for (const Asked& q : questions) {
    const SearchSpace space = space_of(q);
    const Evaluator evaluator(question_of(space.request));
    LowerBounds bounds(space, evaluator);
    std::mt19937 random(17);
    std::vector<Layout> nodes = some_nodes(space, random, tests::draws(100));
    std::ranges::stable_sort(nodes, {}, [](const Layout& l) {
      return std::tuple(l.tp, l.cp, l.micro_batch, l.ep, l.etp);
    });
    for (const Layout& layout : nodes) {
      Problem node = open_problem(space.request);
      node.layout = layout;
      derive(space.request, node);
      CAPTURE(name_of(q.runtime), q.model, layout.tp, layout.pp, layout.vpp, layout.cp, layout.ep,
              layout.micro_batch, name_of(layout.recompute));
      const Evaluator fresh(question_of(space.request));
      LowerBounds first(space, fresh);
      REQUIRE(bounds.node_time(node) == first.node_time(node));
      REQUIRE(bounds.states_memory(node) == first.states_memory(node));
      REQUIRE(bounds.memory(node) == first.memory(node));
    }
  }
}

TEST_CASE("a step's seconds are those of the whole step time", "[sweep]") {
  for (const Asked& q : questions) {
    const SearchSpace space = space_of(q);
    const Evaluator evaluator(question_of(space.request));
    Enumeration all(space);
    std::mt19937 random(11);
    constexpr unsigned one_of = tests::sanitized ? 800 : 8;
    all.all(node_depth, [&](const Problem& p) {
      if (random() % one_of != 0) return;
      Problem at = p;
      at.layout.zero = static_cast<ZeroStage>(choices(space, Field::zero, p).back());
      if (first_violation(at)) return;
      CAPTURE(name_of(q.runtime), q.model, p.layout.tp, p.layout.pp, p.layout.vpp);
      REQUIRE(step_seconds(at, evaluator) == step_time(at, evaluator).seconds);
    });
  }
}

TEST_CASE("a bound of a step's passes has what its update takes above it", "[sweep]") {
  for (const Runtime runtime : {Runtime::megatron, Runtime::fsdp2, Runtime::deepspeed}) {
    const Problem p =
        tests::problem(runtime, "llama3-8b", {.dp = 8, .zero = ZeroStage::gradients}, "H100-80GB");
    const Evaluator evaluator(p);
    const LayoutPieces pieces = evaluator.pieces(p);
    const PlanPoint point = pieces.point();
    const double optimizer = step_time(p, evaluator).optimizer;
    CAPTURE(name_of(runtime), optimizer);
    REQUIRE(optimizer > 0);
    for (const double passes : {10.0, 1'000.0}) {
      CHECK(point_time(point, passes) >= passes + 0.99 * optimizer);
    }
  }
}

TEST_CASE("points of a group that are timed together take what each takes alone", "[sweep]") {
  std::size_t compared = 0;
  for (const Asked& q : questions) {
    const SearchSpace space = space_of(q);
    const Evaluator evaluator(question_of(space.request));
    std::mt19937 random(12);
    for (const Layout& layout : some_nodes(space, random, tests::draws(60))) {
      std::optional<LayoutPieces> known;
      StepLanes together;
      std::vector<double> alone;
      const auto enter = [&](std::size_t depth, const Problem& p) {
        if (depth == group_depth) known.emplace(evaluator.pieces(p));
        return true;
      };
      const auto visit = [&](const Problem& p) {
        together.add(known->point());
        alone.push_back(step_seconds(p, evaluator));
      };
      const auto leave = [&](const Problem& p) {
        CAPTURE(name_of(q.runtime), q.model, p.layout.tp, p.layout.pp, p.layout.vpp);
        REQUIRE(together.seconds() == alone);
        compared += alone.size();
        together.clear();
        alone.clear();
      };
      Enumeration(space).below(layout, node_depth, point_depth, {visit, enter, leave});
    }
  }
  REQUIRE(compared > tests::draws(2000));
}

TEST_CASE("the stages that can be the worst show the worst stage", "[sweep]") {
  for (const Asked& q : questions) {
    const SearchSpace space = space_of(q);
    const Evaluator evaluator(question_of(space.request));
    std::mt19937 random(3);
    for (const Layout& layout : some_nodes(space, random, tests::draws(150))) {
      Enumeration below(space);
      const auto visit = [&](const Problem& p) {
        if (random() % 8 != 0) return;
        CAPTURE(name_of(q.runtime), q.model, p.layout.dp, p.layout.tp, p.layout.pp, p.layout.vpp,
                name_of(p.layout.schedule), p.layout.micro_batch, name_of(p.layout.zero),
                name_of(p.layout.recompute));
        const Estimate whole = estimate(p, evaluator);
        const WorstStage quick = worst_stage(p, evaluator);
        REQUIRE(quick.device == whole.device());
        REQUIRE(quick.verdict == whole.verdict);
        REQUIRE(static_cast<std::int64_t>(quick.stage) == whole.peak().stage);
      };
      below.below(layout, node_depth, point_depth, {visit});
    }
  }
}
