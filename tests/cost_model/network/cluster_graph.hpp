#pragma once
// The cluster as a graph of links: a check on what is counted in closed form.

#include "cost_model/network/group.hpp"
#include "cost_model/network/rank_groups.hpp"

namespace zeroplan {

/// The links of the groups that have the least, by widest paths on a graph of GPUs, NVSwitches,
/// network cards (those of a node as one), leaf switches and a spine. Groups that meet on a node's
/// cards share them evenly. The time grows with nodes x GPUs. `nodes_per_leaf` changes the graph,
/// but not the answer, since the network does not block.
CommunicationGroup graph_placement(const ClusterSpec& cluster,
                                   const RankGroup& group,
                                   std::int64_t nodes_per_leaf = 32);

}  // namespace zeroplan
