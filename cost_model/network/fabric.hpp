#pragma once
// The switches between nodes: which of their uplinks leaves groups of ranks the least.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "cost_model/network/flow_loads.hpp"
#include "cost_model/question/cluster.hpp"
#include "cost_model/question/fabric.hpp"
#include "cost_model/question/numbers.hpp"

namespace zeroplan {

/// The uplinks of a switch that several groups share.
struct SharedUplinks {
  double share = std::numeric_limits<double>::infinity();  // bytes/s of a group; see Fabric
  double capacity = 0;                                     // bytes/s, one direction
  double groups = 0;                                       // whose cards' full load they carry
  std::string name;                                        // uplinks of leaf 3
};

/// Groups of a kind as they send while nothing else does.
struct Sending {
  Flows flows;
  double rate = 0;   // bytes/s of one group, as in SharedUplinks::share
  double cards = 0;  // which part of a node's cards that keeps busy

  bool is_like(const Sending& other) const {
    return flows.group == other.flows.group && flows.pattern == other.flows.pattern;
  }
};

/// What two kinds of groups ask of the uplinks of a switch, and of the cards of a node.
struct UplinkDemand {
  double part = 0;      // of what the uplinks carry
  double cards = 0;     // of what the cards carry
  double capacity = 0;  // bytes/s, one direction
  std::string name;     // uplinks of leaf 3; empty where nothing climbs so far

  /// How much longer both take, as a part of their time: each gets what it gets of its bottleneck
  /// times what there is over what is asked for. Beyond what sharing the cards costs, which is in
  /// the fitted overlap of computing and sending, as it is where no switches are known.
  double crowding() const { return std::max(0.0, part - std::max(1.0, cards)); }
};

/// The fabric of one cluster. Answers are remembered; for use by several threads at once.
class Fabric {
 public:
  /// A fabric for so many GPUs. `fabric` was read by presets/fabric_preset.cpp, which checks it.
  Fabric(FabricSpec fabric, std::int64_t gpus) : spec_(std::move(fabric)), gpus_(gpus) {}

  const FabricSpec& spec() const { return spec_; }
  std::int64_t gpus() const { return gpus_; }

  /// Where the first nodes stand that ranks fill, in that order.
  std::vector<std::int64_t> places(std::int64_t nodes) const;

  /// What the narrowest of all uplinks leaves each group, as bytes/s that the cards of one of its
  /// nodes can send for it: capacity / load, the least over switches and directions. Without limit
  /// where nothing climbs above the first switches. Of all GPUs of the fabric, or `flows.gpus`
  /// where there are more: a group stands wherever others of its kind do.
  double share(const Flows& flows) const;

  /// The narrowest of all uplinks, with its name and what it leaves each group.
  SharedUplinks narrowest(const Flows& flows) const;

  /// Where two kinds of groups send at once, each as fast as it does alone: what they ask of the
  /// uplinks that are asked for the most of what they carry.
  const UplinkDemand& demand(const Sending& one, const Sending& other) const;

  friend bool operator==(const Fabric& a, const Fabric& b) {
    return a.gpus_ == b.gpus_ && a.spec_ == b.spec_;
  }

 private:
  const SwitchGraph& graph_of(std::int64_t nodes) const;
  Flows on_all(Flows flows) const;
  std::string name_of(const SwitchGraph& switches, SwitchGraph::Vertex at) const;

  FabricSpec spec_;
  std::int64_t gpus_;
  mutable std::mutex guard_;
  mutable std::map<std::int64_t, SwitchGraph> graphs_;  // by nodes
  mutable std::unordered_map<Numbers<7>, double, NumbersHash> shares_;
  mutable std::unordered_map<Numbers<14>, UplinkDemand, NumbersHash> demands_;
};

/// Leaves the cluster so many of its GPUs, the first ones, which alone are then busy.
void set_gpu_count(ClusterSpec& cluster, std::int64_t gpus);

}  // namespace zeroplan
