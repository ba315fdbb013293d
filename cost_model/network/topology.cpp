// What do the links leave a group? Front doors: placement, bottleneck, sending.
#include "cost_model/network/topology.hpp"

#include <algorithm>
#include <vector>

#include "cost_model/network/node_counts.hpp"

namespace zeroplan {
namespace {

std::int64_t gpus_of_first_node(const ClusterSpec& cluster) {
  return std::min(cluster.gpus, cluster.gpus_per_node);
}

// The part of what a group sends to other nodes in this pattern that is for GPUs on another rail.
double part_for_other_rails(const ClusterSpec& cluster,
                            const CommunicationGroup& placed,
                            const RankGroup& group,
                            Pattern sent) {
  const std::int64_t node = cluster.gpus_per_node;
  const std::int64_t rails = std::min(cluster.network_cards, node);
  if (cluster.fabric->spec().rails == Rails::none || rails <= 1) return 0;
  // A ring or tree over several GPUs of a node leaves each node where the next is entered.
  if (sent != Pattern::pairs) return placed.ranks_per_node == 1 && group.stride % node != 0 ? 1 : 0;
  const std::int64_t different = std::min(group.ranks, node);  // then places in the node repeat
  std::vector<std::int64_t> on_rail(static_cast<std::size_t>(rails));
  for (std::int64_t i = 0; i < different; ++i) {
    ++on_rail[static_cast<std::size_t>(i * group.stride % node * rails / node)];
  }
  double same = 0;
  for (const std::int64_t ranks : on_rail) same += static_cast<double>(ranks * ranks);
  return 1 - same / static_cast<double>(different * different);
}

// Whether a message reaches its rail through the links of a node before it leaves (NCCL's PXN,
// since 2.12); GPUs on PCIe have but the switches above for that.
bool forwards(const ClusterSpec& cluster) {
  return cluster.intra_node != LinkKind::pcie;
}

Flows flows_of(const ClusterSpec& cluster,
               const CommunicationGroup& placed,
               const RankGroup& group,
               Pattern sent) {
  return {.group = group,
          .pattern = sent,
          .gpus = cluster.gpus,
          .gpus_per_node = cluster.gpus_per_node,
          .ranks_per_node = placed.ranks_per_node,
          .crossing = forwards(cluster) ? 0 : part_for_other_rails(cluster, placed, group, sent)};
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

CommunicationGroup placement(const ClusterSpec& cluster,
                             const RankGroup& group,
                             std::span<const Pattern> sent) {
  CommunicationGroup placed = placement(cluster, group);
  if (!cluster.fabric || nodes_of(placed) == 1) return placed;
  for (const Pattern pattern : sent) {
    placed.uplinks[static_cast<std::size_t>(pattern)] =
        cluster.fabric->share(flows_of(cluster, placed, group, pattern));
    if (!forwards(cluster)) continue;
    placed.forwarded =
        std::max(placed.forwarded, part_for_other_rails(cluster, placed, group, pattern));
  }
  return placed;
}

Bottleneck bottleneck(const ClusterSpec& cluster, const RankGroup& group, Pattern sent) {
  const CommunicationGroup placed = placement(cluster, group);
  Bottleneck least{.name = "cards of a node",
                   .capacity = cluster.inter_node_bandwidth,
                   .groups = static_cast<double>(placed.groups_sharing_network),
                   .share = placed.inter_node_bandwidth};
  if (!cluster.fabric) return least;
  SharedUplinks uplinks = cluster.fabric->narrowest(flows_of(cluster, placed, group, sent));
  // Where cards and uplinks leave the same, cards are what a group meets first.
  if (uplinks.share >= least.share * (1 - 1e-12)) return least;
  return {.name = std::move(uplinks.name),
          .capacity = uplinks.capacity,
          .groups = uplinks.groups,
          .share = uplinks.share};
}

std::optional<Sending> sending(const ClusterSpec& cluster, const RankGroup& group, Pattern sent) {
  if (!cluster.fabric) return std::nullopt;
  const CommunicationGroup placed = placement(cluster, group, std::span(&sent, 1));
  if (nodes_of(placed) == 1) return std::nullopt;
  const double rate = placed.between_nodes(sent);
  return Sending{.flows = flows_of(cluster, placed, group, sent),
                 .rate = rate,
                 .cards = rate * static_cast<double>(placed.groups_sharing_network) /
                          cluster.inter_node_bandwidth};
}

std::string_view link_of(const ClusterSpec& cluster, const RankGroup& group) {
  return nodes_of(placement(cluster, group)) > 1 ? "network" : name_of(cluster.intra_node);
}

}  // namespace zeroplan
