#include "planner/sweep/enumeration.hpp"

#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

// Every point of the space, legal or not, one field after another.
template <class Visit>
void every_point(const SearchSpace& space, Problem& p, std::size_t level, Visit&& visit) {
  if (level == choice_order.size()) {
    visit(p);
    return;
  }
  const Layout before = p.layout;
  for (const std::int64_t value : choices(space, choice_order[level], p)) {
    set_value(p.layout, choice_order[level], value);
    derive(space.request, p);
    every_point(space, p, level + 1, visit);
    p.layout = before;
  }
  derive(space.request, p);
}

}  // namespace

TEST_CASE("cutting the tree counts as asking about every point does", "[sweep][release]") {
  const auto [runtime, model, gpus, batch] =
      GENERATE(table<Runtime, std::string_view, std::int64_t, std::int64_t>(
          {{Runtime::megatron, "llama3-8b", 12, 48},  // 33 chunks: 3 x 11
           {Runtime::megatron, "mixtral-8x7b", 16, 32},
           {Runtime::fsdp2, "llama3.2-1b", 8, 24},
           {Runtime::deepspeed, "llama3-8b", 8, 0},
           {Runtime::nanotron, "llama3-8b", 8, 16},
           {Runtime::ddp, "gpt2", 4, 8}}));
  CAPTURE(name_of(runtime), model);
  SearchSpace space{.request = {.model = find_model(model).spec,
                                .cluster = cluster_of("A100-80GB", gpus),
                                .runtime = load_runtime(runtime, {})}};
  if (batch > 0) space.request.global_batch = batch;
  space.request.sequence_length = 1024;

  Enumeration tree(space);
  std::vector<Layout> nodes;
  tree.all(shape_depth, [&](const Problem& p) { nodes.push_back(p.layout); });
  Rejections rejected = tree.rejected();
  std::int64_t legal = 0;
  for (const Layout& node : nodes) {
    Enumeration below(space);
    const auto visit = [&](const Problem& p) {
      REQUIRE(!first_violation(p));
      ++legal;
    };
    below.below(node, shape_depth, point_depth, {visit});
    for (const auto& [rule, count] : below.rejected()) rejected[rule] += count;
  }

  Rejections expected;
  std::int64_t points = 0;
  std::int64_t expected_legal = 0;
  Problem p = open_problem(space.request);
  every_point(space, p, 0, [&](const Problem& point) {
    ++points;
    const auto violation = first_violation(point);
    violation ? ++expected[violation->rule] : ++expected_legal;
  });
  REQUIRE(legal == expected_legal);
  REQUIRE(rejected == expected);
  REQUIRE(tree.size() == points);
}

// The enumeration looks at what is below a group once a shape.
TEST_CASE("no rule on how states are exchanged reads what a shape leaves open", "[sweep]") {
  using enum Field;
  constexpr unsigned open = set_of({vpp, stage_split, schedule, sequence_parallel, loss_chunks,
                                    recompute, recompute_modules, recompute_layers});
  std::size_t below = 0;
  for (const Runtime runtime : tests::runtimes()) {
    for (const Rule& rule : rules_of({.kind = runtime}).rules) {
      if (depth(rule) <= group_depth) continue;
      ++below;
      CAPTURE(rule.id);
      REQUIRE((rule.reads & open) == 0);
    }
  }
  REQUIRE(below > 0);
}
