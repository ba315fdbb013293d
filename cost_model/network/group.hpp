#pragma once
// A group of ranks that communicate, as the links see it.

#include <algorithm>
#include <array>
#include <cstdint>

#include "cost_model/network/pattern.hpp"
#include "cost_model/question/cluster.hpp"

namespace zeroplan {

/// Plain data, so that a group can be asked about without a cluster or a layout. Bandwidths are the
/// nominal ones, bytes/s in one direction; what software reaches of them is in tuning.hpp.
struct CommunicationGroup {
  std::int64_t ranks = 1;
  std::int64_t ranks_per_node = 1;          // most of them on one node
  std::int64_t groups_sharing_network = 0;  // on one node, all busy at once; 0: needs no network
  double intra_node_bandwidth = 0;          // of a GPU to the others of its node
  double inter_node_bandwidth = 0;          // this group's share of a node's network cards
  LinkKind intra_node = LinkKind::nvlink;
  std::int64_t compute_capability = 0;  // CUDA: 10 x major + minor; 0: not CUDA
  // By Pattern: what the switches between nodes leave the group, where they may carry less than the
  // cards send; 0: no less.
  std::array<double, patterns> uplinks{};
  // The part of what goes to other nodes that passes the links inside a node first, to reach its
  // rail.
  double forwarded = 0;

  /// This group's share of a node's network cards, or less, where it sends in this manner.
  double between_nodes(Pattern pattern) const {
    const double least = uplinks[static_cast<std::size_t>(pattern)];
    return least > 0 ? std::min(least, inter_node_bandwidth) : inter_node_bandwidth;
  }
  friend bool operator==(const CommunicationGroup&, const CommunicationGroup&) = default;
};

/// Nodes the group stands on.
constexpr std::int64_t nodes_of(const CommunicationGroup& group) {
  return (group.ranks + group.ranks_per_node - 1) / group.ranks_per_node;
}

}  // namespace zeroplan
