#pragma once
// What a probe saw GPUs reach, beside what is expected of them. Private to this room.

#include "cost_model/question/cluster.hpp"
#include "presets/strict_json.hpp"

namespace zeroplan {

/// Takes `measured.gemms` and `measured.transfers` of a cluster, as `zeroplan probe` writes them,
/// into its GPU's `product_speed` and `memory_speed` (the middle of all products, and the copy
/// within memory, each over what the law of step time expects of the same kernel alone) and into
/// `host_link_bandwidth` (the slower direction); nothing where they are absent. Throws InputError
/// where they are no positive numbers. `measured.speeds`, as `zeroplan overlay --calibrate` writes
/// them, are both speeds themselves.
void read_measured_speeds(const JsonObject& object, ClusterSpec& cluster);

}  // namespace zeroplan
