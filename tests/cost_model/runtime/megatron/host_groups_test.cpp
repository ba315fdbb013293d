// What of a layer waits on the host, and when does it come back?
#include "cost_model/runtime/megatron/host_groups.hpp"

#include <numeric>

#include "cost_model/answer/estimate.hpp"
#include "cost_model/answer/step_time.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

namespace zeroplan {
namespace {

using enum OffloadModule;
constexpr unsigned attention = bit_of(qkv_linear) | bit_of(core_attn) | bit_of(attn_proj);

Problem moved(unsigned modules, const Layout& layout = {}) {
  Problem p = tests::problem(Runtime::megatron, "llama3-8b", layout);
  p.runtime.megatron.offload_modules = modules;
  return p;
}

std::vector<HostPlace> places(const Problem& p, InFlight in_flight) {
  return host_places(p, std::vector(4, LayerKind::dense), InputHolder::none, in_flight);
}

// Of all layers, the groups that other layers bring back, and those that wait for it.
std::int64_t brought(const std::vector<HostPlace>& places) {
  return std::accumulate(
      places.begin(), places.end(), std::int64_t{0},
      [](auto sum, const auto& p) { return sum + static_cast<std::int64_t>(p.brings.size()); });
}
std::int64_t returned(const std::vector<HostPlace>& places) {
  return std::accumulate(places.begin(), places.end(), std::int64_t{0},
                         [](auto sum, const auto& p) { return sum + p.returned; });
}

TEST_CASE("the last layer's groups stay, and each layer brings back those of the one before") {
  const Problem p = moved(attention);
  const std::vector<HostPlace> all = places(p, InFlight::alone);
  REQUIRE(all[3].own.stays == attention);
  for (std::size_t i = 0; i < 3; ++i) {
    REQUIRE(all[i].own.stays == 0);
    REQUIRE(all[i].returned == 3);
    REQUIRE(all[i + 1].brings.size() == 3);
    REQUIRE(all[i + 1].brings.front() == Returning{all[i].own, 0});
  }
  REQUIRE(all[0].brings.empty());
}

TEST_CASE("the first layer of a micro-batch brings back the last groups of the next one") {
  const Problem p = moved(attention);
  const std::vector<HostPlace> first = places(p, InFlight::first);
  const std::vector<HostPlace> later = places(p, InFlight::later);
  const std::vector<HostPlace> last = places(p, InFlight::last);
  REQUIRE(first[3].own.stays == attention);
  REQUIRE(later[3].own.stays == 0);
  REQUIRE(later[3].returned == 3);
  for (const auto* earlier : {&first, &later}) {
    REQUIRE((*earlier)[0].brings.front() == Returning{later[3].own, 0});
  }
  REQUIRE(last[3].returned == 3);
  REQUIRE(last[0].brings.empty());
}

TEST_CASE("what is brought back is what others wait for") {
  for (const unsigned modules : {bit_of(core_attn), attention}) {
    for (const double fraction : {1.0, 0.7, 0.5, 0.0}) {
      Problem p = moved(modules);
      p.runtime.megatron.activation_offload_fraction = fraction;
      CAPTURE(modules, fraction);
      for (const InFlight in_flight : {InFlight::alone, InFlight::apart}) {
        REQUIRE(brought(places(p, in_flight)) == returned(places(p, in_flight)));
      }
      const std::int64_t steps = brought(places(p, InFlight::first)) +
                                 brought(places(p, InFlight::later)) +
                                 brought(places(p, InFlight::last));
      REQUIRE(steps == returned(places(p, InFlight::first)) + returned(places(p, InFlight::later)) +
                           returned(places(p, InFlight::last)));
    }
  }
}

TEST_CASE("of the groups that leave a fraction does, the earlier ones") {
  Problem p = moved(attention);
  p.runtime.megatron.activation_offload_fraction = 0.5;
  const std::vector<HostPlace> all = places(p, InFlight::alone);  // of nine 4.5 stay
  REQUIRE(all[2].own.stays == attention);
  REQUIRE(all[1].own.stays == bit_of(attn_proj));
  REQUIRE(all[0].own.stays == 0);
}

TEST_CASE("a module without a norm or experts of its own has no group") {
  const unsigned all = 255U & ~bit_of(fused_group_mlp);
  REQUIRE(host_groups(moved(all), LayerKind::dense, 0) == attention);
  REQUIRE(host_groups(moved(all), LayerKind::dense, bit_of(RecomputeModule::core_attn)) ==
          (attention & ~bit_of(core_attn)));
  Problem p = tests::problem(Runtime::megatron, "deepseek-v3", {});
  p.runtime.megatron.offload_modules = all;
  REQUIRE(host_groups(p, LayerKind::dense, 0) == (attention | bit_of(attn_norm)));
  REQUIRE(host_groups(p, LayerKind::moe, 0) == all);
  p.runtime.megatron.cuda_graph_impl = CudaGraphs::transformer_engine;
  p.runtime.megatron.cuda_graph_scope = 1U << static_cast<unsigned>(GraphScope::attn);
  REQUIRE(host_groups(p, LayerKind::moe, 0) == (all & ~bit_of(attn_norm) & ~bit_of(mlp_norm)));
}

TEST_CASE("what waits on the host is off the device, and takes its time to get there") {
  const Problem on_device = moved(0, {.dp = 8});
  const Problem on_host = moved(attention, {.dp = 8});
  const Estimate kept = estimate(on_device, Evaluator(on_device));
  const Estimate left = estimate(on_host, Evaluator(on_host));
  REQUIRE(left.device() < kept.device());
  REQUIRE(left.host_a_node > kept.host_a_node);
  Problem slow = on_host;
  slow.cluster.host_link_bandwidth = 1e9;
  REQUIRE(step_time(slow, Evaluator(slow)).seconds >
          2 * step_time(on_host, Evaluator(on_host)).seconds);
}

}  // namespace
}  // namespace zeroplan
