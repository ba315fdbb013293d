#pragma once
// What all groups of one kind, busy at once, put on the uplinks of a fabric's switches.

#include <cstdint>
#include <vector>

#include "cost_model/network/pattern.hpp"
#include "cost_model/network/rank_groups.hpp"
#include "cost_model/network/switch_graph.hpp"

namespace zeroplan {

/// Groups that tile ranks, in nodes of so many GPUs, and how each of them sends.
struct Flows {
  RankGroup group;
  Pattern pattern = Pattern::ring;
  std::int64_t gpus = 1;  // all of them
  std::int64_t gpus_per_node = 8;
  std::int64_t ranks_per_node = 1;  // of a group, most of them on one node
  // The part of what is sent to other nodes that has to change rails in the switches above the
  // first.
  double crossing = 0;
};

/// What goes up and what comes down the uplinks of each switch, by switch. 1 is what the cards of a
/// node carry for one group of this kind, as the formulas of collective_time.cpp have it.
struct UplinkLoads {
  std::vector<double> up, down;
};

/// Nodes of a ring, and of the trees, follow each other as ranks do. Trees as NCCL builds them
/// (src/graph/trees.cc @5067397c).
UplinkLoads flow_loads(const SwitchGraph& switches, const Flows& flows);

}  // namespace zeroplan
