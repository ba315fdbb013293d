#pragma once
// The switches between nodes, as a cluster preset says them under "fabric".

#include <optional>

#include "cost_model/question/cluster.hpp"
#include "cost_model/question/fabric.hpp"
#include "presets/strict_json.hpp"

namespace zeroplan {

/// Networks are named by gigabits a second.
inline constexpr double bytes_per_second_of_gigabit = giga / 8;

/// Nothing where the preset says none. `cluster`: its nodes and cards, read before. Throws
/// InputError where it contradicts them or itself.
std::optional<FabricSpec> read_fabric(const JsonObject& object, const ClusterSpec& cluster);

/// Nodes that the fabric has: those listed, else as many as its switches join; 0: without limit.
std::int64_t node_count(const FabricSpec& fabric);

}  // namespace zeroplan
