#pragma once
// Clusters whose nodes are joined by switches that a test makes up.

#include <memory>
#include <vector>

#include "cost_model/network/fabric.hpp"
#include "cost_model/question/cluster.hpp"

namespace zeroplan::tests {

/// Nodes of 8 H100 on NVLink with 8 cards of 400 Gb/s: 400 GB/s a node, 50 GB/s a card.
inline ClusterSpec eights(std::int64_t nodes) {
  return {.gpu = {.compute_capability = 90},
          .gpus = 8 * nodes,
          .gpus_per_node = 8,
          .intra_node_bandwidth = 450 * giga,
          .inter_node_bandwidth = 400 * giga,
          .network_cards = 8};
}

inline ClusterSpec joined_by(FabricSpec fabric, ClusterSpec cluster) {
  cluster.fabric = {std::make_shared<const Fabric>(std::move(fabric), cluster.gpus)};
  return cluster;
}

/// Leaves of so many of these nodes, and one spine above them: `ratio` : 1.
inline FabricSpec leaves_and_spine(std::int64_t nodes, double ratio) {
  const double below = static_cast<double>(nodes) * 400 * giga;
  return {.levels = {{"leaf", nodes, below / ratio}, {"spine"}}};
}

}  // namespace zeroplan::tests
