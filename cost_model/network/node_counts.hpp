#pragma once
// How do groups meet on nodes, where not all of them find the same?

#include <cstdint>

#include "cost_model/network/rank_groups.hpp"

namespace zeroplan {

/// The most that one node has, of all groups of a kind that tile a cluster's ranks. The time grows
/// with the GPUs of a node, not with those of the cluster.
struct NodeCounts {
  std::int64_t ranks = 1;   // of one group
  std::int64_t groups = 0;  // of those that span nodes
};

NodeCounts node_counts(const ClusterSpec& cluster, const RankGroup& group);

}  // namespace zeroplan
