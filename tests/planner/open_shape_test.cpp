#include "planner/sweep/open_shape.hpp"

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "planner/sweep/shape_search.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

std::vector<SearchSpace> space_of(Runtime runtime, std::string_view model) {
  SearchSpace space{.request = {.model = find_model(model).spec,
                                .cluster = cluster_of("H100-80GB", 8),
                                .runtime = load_runtime(runtime, {})}};
  space.request.global_batch = 96;
  return {space};
}

std::vector<Layout> some_shapes(const SearchSpace& space) {
  std::vector<Layout> shapes;
  Enumeration(space).all(shape_depth, [&](const Problem& p) { shapes.push_back(p.layout); });
  std::mt19937 random(11);
  std::shuffle(shapes.begin(), shapes.end(), random);
  shapes.resize(std::min<std::size_t>(shapes.size(), tests::draws(600)));
  return shapes;
}

}  // namespace

// Between the cutoff that a shape was opened with and what it says of the rest there is no plan;
// just below the best there is nothing but the best.
TEST_CASE("a shape knows how good what it leaves out may be", "[sweep]") {
  const auto [runtime, model] =
      GENERATE(table<Runtime, std::string_view>({{Runtime::megatron, "llama3-8b"},
                                                 {Runtime::megatron, "deepseek-v2-lite"},
                                                 {Runtime::fsdp2, "llama3-8b"},
                                                 {Runtime::deepspeed, "llama3.2-1b"}}));
  const auto objective = GENERATE(Objective::step, Objective::headroom);
  const std::vector<SearchSpace> spaces = space_of(runtime, model);
  ShapeSearch worker(spaces);
  int beyond_cutoff = 0;
  for (const Layout& shape : some_shapes(spaces.front())) {
    const auto below = [&](double threshold) {
      return worker.open(
          0, shape, {.objective = objective, .threshold = threshold, .none_fits = false}, {}, {});
    };
    const ShapeResult all = below(no_threshold);
    if (!all.best) {
      REQUIRE(all.beyond == no_threshold);
      continue;
    }
    const double best = objective_value(objective, *all.best);
    const double part = objective == Objective::step ? 0.8 * best : best - std::abs(best) / 4;
    const ShapeResult none = below(part);
    REQUIRE(!none.best);
    REQUIRE(none.beyond > part);
    REQUIRE(none.beyond <= best);
    beyond_cutoff += none.beyond > part + (best - part) / 2;
    const ShapeResult still = below(std::nextafter(none.beyond, -no_threshold));
    REQUIRE(!still.best);
    REQUIRE(below(std::nextafter(best, -no_threshold)).beyond == best);
  }
  CHECK(beyond_cutoff > 0);
}
