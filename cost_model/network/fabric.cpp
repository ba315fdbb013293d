// Which uplinks are the narrowest? Front door: Fabric.
#include "cost_model/network/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace zeroplan {
namespace {

Numbers<7> key_of(const Flows& flows) {
  return {flows.group.ranks,
          flows.group.stride,
          flows.group.neighbours(),
          static_cast<std::int64_t>(flows.pattern),
          flows.gpus,
          flows.gpus_per_node,
          flows.ranks_per_node};
}

Numbers<14> joined(const Numbers<7>& a, const Numbers<7>& b) {
  Numbers<14> both;
  std::ranges::copy(b, std::ranges::copy(a, both.begin()).out);
  return both;
}

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

std::string Fabric::name_of(const SwitchGraph& switches, SwitchGraph::Vertex v) const {
  const SwitchGraph::Switch& at = switches.at(v);
  const bool by_rail =
      spec_.rails == Rails::only || (spec_.rails == Rails::optimized && at.level == 0);
  return fmt::format("uplinks of {} {}{}", spec_.levels[at.level].name, at.number,
                     by_rail ? ", all rails" : "");
}

double Fabric::share(const Flows& asked) const {
  const Flows flows = on_all(asked);
  const std::lock_guard lock(guard_);
  const auto [known, added] = shares_.try_emplace(key_of(flows));
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
  return {.share = found.share,
          .capacity = switches.capacity(found.at),
          .groups = found.load,
          .name = name_of(switches, found.at)};
}

const UplinkDemand& Fabric::demand(const Sending& one, const Sending& other) const {
  const Flows a = on_all(one.flows), b = on_all(other.flows);
  const std::lock_guard lock(guard_);
  const auto [known, added] = demands_.try_emplace(joined(key_of(a), key_of(b)));
  if (!added) return known->second;
  UplinkDemand& most = known->second;
  most.cards = one.cards + other.cards;
  const SwitchGraph& switches = graph_of(ceil_div(a.gpus, a.gpus_per_node));
  const UplinkLoads of_a = flow_loads(switches, a), of_b = flow_loads(switches, b);
  for (SwitchGraph::Vertex v = 0; v < switches.size(); ++v) {
    if (switches.is_top(v)) continue;
    const double up = one.rate * of_a.up[v] + other.rate * of_b.up[v];
    const double down = one.rate * of_a.down[v] + other.rate * of_b.down[v];
    const double part = std::max(up, down) / switches.capacity(v);
    if (part > most.part) most = {part, most.cards, switches.capacity(v), name_of(switches, v)};
  }
  return most;
}

void set_gpu_count(ClusterSpec& cluster, std::int64_t gpus) {
  cluster.gpus = gpus;
  if (!cluster.fabric || cluster.fabric->gpus() == gpus) return;
  cluster.fabric = {std::make_shared<const Fabric>(cluster.fabric->spec(), gpus)};
}

}  // namespace zeroplan
