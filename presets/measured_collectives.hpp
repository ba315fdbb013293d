#pragma once
// The times of collectives that a cluster file brings. Private to this room.

#include <vector>

#include "cost_model/question/measured_time.hpp"
#include "presets/strict_json.hpp"

namespace zeroplan {

/// The tables under "collectives" of a cluster, as `zeroplan probe` writes them; empty when there
/// are none. A longer message is never taken to be faster: where noise says so, the time before
/// stands. Throws InputError when a table has no points, lists of different lengths, payloads that
/// do not rise, or a twin.
std::vector<MeasuredCollective> read_measured_collectives(const JsonObject& cluster);

}  // namespace zeroplan
