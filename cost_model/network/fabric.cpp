// Which uplinks are the narrowest? Front door: Fabric.
#include "cost_model/network/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace zeroplan {
namespace {

struct Narrowest {
  double share = std::numeric_limits<double>::infinity();
  double load = 0;
  SwitchGraph::Vertex at = 0;
};

Narrowest narrowest_of(const SwitchGraph& switches, const Flows& flows) {
  const UplinkLoads loads = flow_loads(switches, flows);
  Narrowest least;
  for (SwitchGraph::Vertex v = 0; v < switches.size(); ++v) {
    const double load = std::max(loads.up[v], loads.down[v]);
    if (load == 0 || switches.is_top(v)) continue;
    const double share = switches.capacity(v) / load;
    if (share < least.share) least = {share, load, v};
  }
  return least;
}

}  // namespace

bool operator==(const FabricHandle& a, const FabricHandle& b) {
  return a.shared == b.shared || (a && b && *a == *b);
}

std::vector<std::int64_t> Fabric::places(std::int64_t nodes) const {
  std::vector<std::int64_t> places(spec_.nodes.begin(), spec_.nodes.end());
  places.resize(std::min(places.size(), static_cast<std::size_t>(nodes)));
  const std::int64_t next =
      spec_.nodes.empty() ? 0 : *std::max_element(spec_.nodes.begin(), spec_.nodes.end()) + 1;
  while (std::ssize(places) < nodes) {
    places.push_back(next + std::ssize(places) - std::ssize(spec_.nodes));
  }
  return places;
}

const SwitchGraph& Fabric::graph_of(std::int64_t nodes) const {
  const auto known = graphs_.find(nodes);
  if (known != graphs_.end()) return known->second;
  return graphs_.try_emplace(nodes, spec_, places(nodes)).first->second;
}

Flows Fabric::on_all(Flows flows) const {
  flows.gpus = std::max(flows.gpus, gpus_);
  return flows;
}

double Fabric::share(const Flows& asked) const {
  const Flows flows = on_all(asked);
  const std::lock_guard lock(guard_);
  const auto [known, added] =
      shares_.try_emplace({flows.group.ranks, flows.group.stride, flows.group.neighbours(),
                           static_cast<std::int64_t>(flows.pattern), flows.gpus,
                           flows.gpus_per_node, flows.ranks_per_node});
  if (added) {
    known->second = narrowest_of(graph_of(ceil_div(flows.gpus, flows.gpus_per_node)), flows).share;
  }
  return known->second;
}

SharedUplinks Fabric::narrowest(const Flows& asked) const {
  const Flows flows = on_all(asked);
  const std::lock_guard lock(guard_);
  const SwitchGraph& switches = graph_of(ceil_div(flows.gpus, flows.gpus_per_node));
  const Narrowest found = narrowest_of(switches, flows);
  if (found.load == 0) return {};
  const SwitchGraph::Switch& at = switches.at(found.at);
  const bool by_rail =
      spec_.rails == Rails::only || (spec_.rails == Rails::optimized && at.level == 0);
  return {.share = found.share,
          .capacity = switches.capacity(found.at),
          .groups = found.load,
          .name = fmt::format("uplinks of {} {}{}", spec_.levels[at.level].name, at.number,
                              by_rail ? ", all rails" : "")};
}

void set_gpu_count(ClusterSpec& cluster, std::int64_t gpus) {
  cluster.gpus = gpus;
  if (!cluster.fabric || cluster.fabric->gpus() == gpus) return;
  cluster.fabric = {std::make_shared<const Fabric>(cluster.fabric->spec(), gpus)};
}

}  // namespace zeroplan
