#pragma once
// Where the groups of a layout stand on the cluster, and what its links leave each of them.
//
// Ranks fill node after node. All groups of one kind run their collective at once, which is what a
// step makes them do, so those that span nodes share the network cards. The network itself is taken
// to carry what the cards can send (a fat tree that does not block).

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

/// What the ranks of one of these groups send over: the link of a node (nvlink, xgmi, pcie), or
/// "network" where some of them stand on other nodes.
std::string_view link_of(const ClusterSpec& cluster, const RankGroup& group);

}  // namespace zeroplan
