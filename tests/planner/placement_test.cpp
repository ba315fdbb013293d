// The order in which ranks fill the nodes of a fabric.
#include "planner/placement.hpp"

#include <algorithm>
#include <random>

#include "tests/catch.hpp"
#include "tests/cost_model/network/fabrics.hpp"
#include "tests/draws.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

Problem on_fabric(FabricSpec fabric, const Layout& layout) {
  Problem p = tests::problem(Runtime::megatron, "llama3-70b", layout, "H100-80GB");
  p.cluster = tests::joined_by(std::move(fabric), p.cluster);
  return p;
}

double seconds(const Problem& p) {
  return step_time(p, Evaluator(p)).seconds;
}

std::optional<BetterPlacement> better(const Problem& p) {
  return better_placement(p, step_time(p, Evaluator(p)));
}

}  // namespace

TEST_CASE("an order that keeps stages apart is put in order") {
  const Layout layout{.dp = 4, .tp = 8, .pp = 2, .zero = ZeroStage::optimizer};
  FabricSpec fabric = tests::leaves_and_spine(4, 16);
  REQUIRE_FALSE(better(on_fabric(tests::leaves_and_spine(4, 1), layout)));
  fabric.nodes = {0, 4, 1, 5, 2, 6, 3, 7};
  const auto found = better(on_fabric(fabric, layout));
  REQUIRE(found);
  // What it says is what another question answers.
  fabric.nodes = found->nodes;
  const Problem other = on_fabric(fabric, layout);
  REQUIRE(seconds(other) == found->step_seconds);
  REQUIRE_FALSE(better(other));
}

// Leaves with three, four and one of these nodes. As they come, stages lie on 0 2 3 | 4 and on
// 5 6 7 | 8, and leaf 1 has the rings of both; a stage fits below it whole.
TEST_CASE("stages are laid whole below uneven leaves") {
  FabricSpec fabric = tests::leaves_and_spine(4, 8);
  fabric.nodes = {0, 2, 3, 4, 5, 6, 7, 8};
  const auto found =
      better(on_fabric(fabric, {.dp = 4, .tp = 8, .pp = 2, .zero = ZeroStage::optimizer}));
  REQUIRE(found);
  REQUIRE(found->what == "each pipeline stage");
  REQUIRE(found->nodes == std::vector<std::int64_t>{0, 2, 3, 8, 4, 5, 6, 7});
}

TEST_CASE("another order has the same nodes, and the time that it says, which is less") {
  std::mt19937 random(4);
  int found_some = 0;
  for (int i = 0; i < tests::draws(40); ++i) {
    const auto one_of = [&](std::initializer_list<std::int64_t> values) {
      return *(values.begin() + random() % values.size());
    };
    const Layout layout{
        .dp = one_of({2, 3, 4, 6}), .tp = 8, .pp = one_of({1, 2, 4}), .zero = ZeroStage::optimizer};
    FabricSpec fabric = tests::leaves_and_spine(one_of({2, 3, 4}), 8);
    for (std::int64_t place = 0; place < 32; ++place) fabric.nodes.push_back(place);
    std::shuffle(fabric.nodes.begin(), fabric.nodes.end(), random);
    fabric.nodes.resize(static_cast<std::size_t>(layout.dp * layout.pp));
    const Problem given = on_fabric(fabric, layout);
    const auto found = better(given);
    if (!found) continue;
    ++found_some;
    std::vector<std::int64_t> before = fabric.nodes, after = found->nodes;
    std::ranges::sort(before);
    std::ranges::sort(after);
    REQUIRE(before == after);
    fabric.nodes = found->nodes;
    REQUIRE(seconds(on_fabric(fabric, layout)) == found->step_seconds);
    REQUIRE(found->step_seconds < seconds(given));
  }
  REQUIRE(found_some > 0);
}
