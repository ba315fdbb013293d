#pragma once
// The cluster as a graph of links, for groups that do not all find the same, and as a check on the
// closed form for those that do.

#include "cost_model/network/group.hpp"
#include "cost_model/network/rank_groups.hpp"

namespace zeroplan {

/// The links of the groups that have the least, by widest paths on a graph of GPUs, NVSwitches,
/// network cards (those of a node as one), leaf switches and a spine. Groups that meet on a node's
/// cards share them evenly. The time grows with nodes x GPUs: for thousands of GPUs ask only where
/// `is_symmetric` (see topology.hpp) does not hold. `nodes_per_leaf` changes the graph, but not the
/// answer, since the network does not block.
CommunicationGroup graph_placement(const ClusterSpec& cluster,
                                   const RankGroup& group,
                                   std::int64_t nodes_per_leaf = 32);

}  // namespace zeroplan
