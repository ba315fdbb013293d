// What nanotron's Python takes to update the parameters of a stage.
#include "cost_model/kernel/time_constants.hpp"
#include "cost_model/pipeline/optimizer_time.hpp"
#include "cost_model/runtime/nanotron/code.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

TEST_CASE("nanotron's host updates parameters one by one, and under ZeRO gathers as many slices") {
  const auto seconds = [](const Layout& layout) {
    const Problem p = tests::problem(Runtime::nanotron, "llama3-8b", layout, "H100-80GB");
    const WeightInventory inventory = weight_inventory(p.model);
    return nanotron_update(p, inventory, stages(p).front()).host_seconds;
  };
  const HostConstants& host = time_constants(cluster_of("H100-80GB", 8).gpu).host;
  // Of a layer its norms as one, as the constant was fitted, two fused projections and two of the
  // MLP; embedding, final norm, head.
  constexpr double parameters = 32 * 5 + 3;
  CHECK(seconds({.dp = 8}) == Approx(parameters * host.nanotron_update));
  CHECK(seconds({.zero = ZeroStage::optimizer}) == Approx(parameters * host.nanotron_update));
  CHECK(seconds({.dp = 8, .zero = ZeroStage::optimizer}) ==
        Approx(parameters * (host.nanotron_update + 8 * host.nanotron_slice)));
}
