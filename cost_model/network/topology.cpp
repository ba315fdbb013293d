// What do the links leave a group? Front door: placement.
#include "cost_model/network/topology.hpp"

#include <algorithm>

#include "cost_model/network/node_counts.hpp"

namespace zeroplan {
namespace {

std::int64_t gpus_of_first_node(const ClusterSpec& cluster) {
  return std::min(cluster.gpus, cluster.gpus_per_node);
}

}  // namespace

bool is_symmetric(const ClusterSpec& cluster, const RankGroup& group) {
  const std::int64_t node = gpus_of_first_node(cluster);
  const std::int64_t block = group.span();
  if (block <= node) return node % block == 0;
  const bool inside_out = node % group.stride == 0 && block % node == 0;
  return cluster.gpus % node == 0 && (inside_out || group.stride % node == 0);
}

CommunicationGroup symmetric_placement(const ClusterSpec& cluster, const RankGroup& group) {
  const std::int64_t node = gpus_of_first_node(cluster);
  const bool spans_nodes = group.span() > node;
  const std::int64_t local =
      spans_nodes ? std::max<std::int64_t>(1, node / group.stride) : group.ranks;
  const std::int64_t sharing = spans_nodes ? std::min(node / local, group.neighbours()) : 0;
  return {.ranks = group.ranks,
          .ranks_per_node = local,
          .groups_sharing_network = sharing,
          .intra_node_bandwidth = cluster.intra_node_bandwidth,
          .inter_node_bandwidth =
              spans_nodes ? cluster.inter_node_bandwidth / static_cast<double>(sharing) : 0,
          .intra_node = cluster.intra_node,
          .compute_capability = cluster.gpu.compute_capability};
}

CommunicationGroup counted_placement(const ClusterSpec& cluster, const RankGroup& group) {
  const NodeCounts most = node_counts(cluster, group);
  return {.ranks = group.ranks,
          .ranks_per_node = most.ranks,
          .groups_sharing_network = most.groups,
          .intra_node_bandwidth = cluster.intra_node_bandwidth,
          .inter_node_bandwidth =
              most.groups > 0 ? cluster.inter_node_bandwidth / static_cast<double>(most.groups) : 0,
          .intra_node = cluster.intra_node,
          .compute_capability = cluster.gpu.compute_capability};
}

CommunicationGroup placement(const ClusterSpec& cluster, const RankGroup& group) {
  return is_symmetric(cluster, group) ? symmetric_placement(cluster, group)
                                      : counted_placement(cluster, group);
}

std::string_view link_of(const ClusterSpec& cluster, const RankGroup& group) {
  return nodes_of(placement(cluster, group)) > 1 ? "network" : name_of(cluster.intra_node);
}

}  // namespace zeroplan
