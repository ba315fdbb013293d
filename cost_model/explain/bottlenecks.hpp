#pragma once
// Which link between nodes bounds what a rank sends.

#include <optional>
#include <string>

#include "cost_model/network/topology.hpp"
#include "cost_model/network/volume.hpp"

namespace zeroplan {

/// Of the collective's algorithm, with all groups of its kind at once. Nothing where the cluster
/// says nothing of switches, the group stands on one node, or its time was measured.
std::optional<Bottleneck> bottleneck_of(const Problem& problem, const CollectiveLoad& load);

/// "uplinks of leaf 0: 200 GB/s for 32 groups, 6.25 GB/s each".
std::string sentence_of(const Bottleneck& bottleneck);

}  // namespace zeroplan
