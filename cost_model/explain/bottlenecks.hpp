#pragma once
// Which link between nodes bounds what a rank sends, and what else takes part of it.

#include <optional>
#include <string>
#include <vector>

#include "cost_model/network/topology.hpp"
#include "cost_model/network/volume.hpp"
#include "cost_model/pipeline/timed_load.hpp"

namespace zeroplan {

/// What bounds the collective's algorithm between nodes, with all groups of its kind at once.
/// Nothing where the cluster says nothing of switches, the group stands on one node, or its time
/// was measured.
std::optional<Bottleneck> bottleneck_of(const Problem& problem, const CollectiveLoad& load);

/// What a pass sends over uplinks that a load beside it needs too.
struct SharedUplink {
  const CollectiveLoad* other;
  const UplinkDemand* demand;  // of both loads
};

/// Each of a stage's `loads` that makes `load` take longer, sent in the passes beside it. Valid as
/// long as `loads` and the problem's fabric.
std::vector<SharedUplink> shared_uplinks(const Problem& problem,
                                         const std::vector<TimedLoad>& loads,
                                         const TimedLoad& load);

/// "pp send-recv, forward: both ask for 2 times the 200 GB/s of uplinks of leaf 0".
std::string sentence_of(const SharedUplink& shared);

/// "uplinks of leaf 0: 200 GB/s for 32 groups, 6.25 GB/s each".
std::string sentence_of(const Bottleneck& bottleneck);

}  // namespace zeroplan
