// Which link is the slowest? Front door: bottleneck_of.
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

std::string sentence_of(const Bottleneck& b) {
  return fmt::format("{}: {:.5g} GB/s for {:.4g} {}, {:.4g} GB/s each", b.name, b.capacity / giga,
                     b.groups, b.groups == 1 ? "group" : "groups", b.share / giga);
}

}  // namespace zeroplan
