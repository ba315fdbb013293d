// On how many GPUs is the cheapest plan looked for?
#include "planner/sweep/sweep.hpp"

#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

TEST_CASE("the cheapest plan is looked for on so many GPUs, on half of them, and so on") {
  Request r{.model = find_model("llama3.2-1b").spec,
            .cluster = cluster_of("H100-80GB", 12),
            .runtime = load_runtime(Runtime::megatron, {})};
  r.zero = ZeroStage::optimizer;
  const SweepAnswer cheapest = sweep({.request = r, .objective = Objective::cost, .top = 1});
  CHECK(cheapest.gpu_counts == std::vector<std::int64_t>{12, 6, 3});
  CHECK(sweep({.request = r, .top = 1}).gpu_counts == std::vector<std::int64_t>{12});
}
