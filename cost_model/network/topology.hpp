#pragma once
// Where the groups of a layout stand on the cluster, and what its links leave each of them.
//
// Ranks fill node after node. All groups of one kind run their collective at once, which is what a
// step makes them do, so those that span nodes share the network cards, and the uplinks of the
// switches above them. Where a cluster says nothing of switches, they are taken to carry what the
// cards can send (a fat tree that does not block).

#include <optional>
#include <span>
#include <string>

#include "cost_model/network/fabric.hpp"
#include "cost_model/network/group.hpp"
#include "cost_model/network/rank_groups.hpp"

namespace zeroplan {

/// Whether each group finds the same: nodes are full, and blocks of ranks end where nodes end.
bool is_symmetric(const ClusterSpec& cluster, const RankGroup& group);

/// The links of any of these groups on a cluster where `is_symmetric` holds, in closed form:
/// a node of g GPUs holds g / stride ranks of a group that spans nodes (1 when the stride is a
/// node or more), and each group gets that part of the node's cards.
CommunicationGroup symmetric_placement(const ClusterSpec& cluster, const RankGroup& group);

/// The links of the groups that have the least, on any cluster: of those that meet on the cards of
/// one node where most do.
CommunicationGroup counted_placement(const ClusterSpec& cluster, const RankGroup& group);

/// The links of the groups that have the least: in closed form where all are alike, else counted.
CommunicationGroup placement(const ClusterSpec& cluster, const RankGroup& group);

/// The links of the groups that have the least, with what the cluster's fabric leaves them in each
/// of these patterns, in which the collective may be sent.
CommunicationGroup placement(const ClusterSpec& cluster,
                             const RankGroup& group,
                             std::span<const Pattern> sent);

/// What bounds groups that span nodes and send in this pattern.
struct Bottleneck {
  std::string name;     // uplinks of leaf 3, or cards of a node
  double capacity = 0;  // bytes/s, one direction
  double groups = 0;    // that share it, each with its cards' full load
  double share = 0;     // bytes/s of one group
};

/// The bottleneck of a group on several nodes.
Bottleneck bottleneck(const ClusterSpec& cluster, const RankGroup& group, Pattern sent);

/// Groups of this kind as they send while nothing else does; nothing where the cluster says nothing
/// of switches, or none of them leaves its node.
std::optional<Sending> sending(const ClusterSpec& cluster, const RankGroup& group, Pattern sent);

/// What the ranks of one of these groups send over: the link of a node (nvlink, xgmi, pcie), or
/// "network" where some of them stand on other nodes.
std::string_view link_of(const ClusterSpec& cluster, const RankGroup& group);

}  // namespace zeroplan
