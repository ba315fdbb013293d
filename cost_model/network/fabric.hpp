#pragma once
// The switches between nodes: which of their uplinks leaves groups of ranks the least.

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

/// Of one cluster. Answers are remembered; for use by several threads at once.
class Fabric {
 public:
  /// For so many GPUs. `fabric` was read by presets/fabric_preset.cpp, which checks it.
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

  /// The same with its name.
  SharedUplinks narrowest(const Flows& flows) const;

  friend bool operator==(const Fabric& a, const Fabric& b) {
    return a.gpus_ == b.gpus_ && a.spec_ == b.spec_;
  }

 private:
  const SwitchGraph& graph_of(std::int64_t nodes) const;
  Flows on_all(Flows flows) const;

  FabricSpec spec_;
  std::int64_t gpus_;
  mutable std::mutex guard_;
  mutable std::map<std::int64_t, SwitchGraph> graphs_;  // by nodes
  mutable std::unordered_map<Numbers<7>, double, NumbersHash> shares_;
};

/// So many of its GPUs, the first ones, which alone are then busy.
void set_gpu_count(ClusterSpec& cluster, std::int64_t gpus);

}  // namespace zeroplan
