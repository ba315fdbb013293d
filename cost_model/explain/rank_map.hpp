#pragma once
// Which rank of a layout sits where, and over which link each kind of group exchanges.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cost_model/network/rank_groups.hpp"

namespace zeroplan {

/// A rank, and its place in each dimension. Ranks fill node after node; in a pipeline stage tp is
/// innermost, then cp, then dp; of experts etp, then ep (rank_groups.hpp).
struct RankPlace {
  std::int64_t rank = 0;
  std::int64_t node = 0, gpu = 0;  // gpu: of the node
  std::int64_t tp = 0, cp = 0, dp = 0, pp = 0;
  std::int64_t etp = 0, ep = 0;
};

RankPlace place_of(const Problem& problem, std::int64_t rank);

/// Where the nodes stand in the cluster's fabric, by their number; empty where it says none.
std::vector<std::int64_t> node_places(const Problem& problem);

/// Under which of the fabric's first switches the nodes stand, and what those are called.
struct NodeSwitches {
  std::string name;                 // leaf
  std::vector<std::int64_t> under;  // by node; empty where the cluster says no fabric
};
NodeSwitches node_switches(const Problem& problem);

/// The groups of a kind: all exchange at once.
struct GroupPlacement {
  RankGroup group;
  std::int64_t ranks_on_a_node = 1;
  std::int64_t nodes = 1;
  std::string_view link;  // between the farthest: nvlink, xgmi, pcie or network
};

/// The placements of the groups of more than one rank, in the order of rank_groups.
std::vector<GroupPlacement> group_placements(const Problem& problem);

/// Sentences about groups that leave a node though they exchange in every layer: tensor
/// parallelism, of the model and of experts.
std::vector<std::string> far_groups(const Problem& problem);

}  // namespace zeroplan
