// Which link is the slowest, and who shares it? Front doors: bottleneck_of, shared_uplinks.
#include "cost_model/explain/bottlenecks.hpp"

#include <fmt/format.h>

#include "cost_model/network/collective_time.hpp"

namespace zeroplan {

std::optional<Bottleneck> bottleneck_of(const Problem& problem, const CollectiveLoad& load) {
  const ClusterSpec& cluster = problem.cluster;
  if (!cluster.fabric || nodes_of(placement(cluster, load.group)) == 1) return std::nullopt;
  const CollectiveTime time = collective_time(load.collective, cluster, load.group, load.payload);
  const auto sent = pattern_between_nodes(load.collective, time.algorithm);
  return sent ? std::optional(bottleneck(cluster, load.group, *sent)) : std::nullopt;
}

std::vector<SharedUplink> shared_uplinks(const Problem& problem,
                                         const std::vector<TimedLoad>& loads,
                                         const TimedLoad& load) {
  std::vector<SharedUplink> shared;
  const auto beside = sent_beside(problem.cluster, load, load.behind, 1);
  if (!beside) return shared;
  for (const TimedLoad& other : loads) {
    const CollectiveLoad& l = other.load;
    if (!other.between || l.during != beside->during || holds_states(l.group.name)) continue;
    const auto who = sending(problem.cluster, l.group, *other.between);
    if (!who) continue;
    const UplinkDemand& demand = problem.cluster.fabric->demand(beside->who, *who);
    if (demand.crowding() > 0) shared.push_back({&l, &demand});
  }
  return shared;
}

std::string sentence_of(const SharedUplink& shared) {
  const CollectiveLoad& other = *shared.other;
  return fmt::format("{} {}, {}: both ask for {:.3g} times the {:.5g} GB/s of {}", other.group.name,
                     name_of(other.collective), name_of(other.during), shared.demand->part,
                     shared.demand->capacity / giga, shared.demand->name);
}

std::string sentence_of(const Bottleneck& b) {
  return fmt::format("{}: {:.5g} GB/s for {:.4g} {}, {:.4g} GB/s each", b.name, b.capacity / giga,
                     b.groups, b.groups == 1 ? "group" : "groups", b.share / giga);
}

}  // namespace zeroplan
