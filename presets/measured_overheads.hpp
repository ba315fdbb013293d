#pragma once
// What a probe saw in device memory beside tensors. Private to this room.

#include "cost_model/question/cluster.hpp"
#include "presets/strict_json.hpp"

namespace zeroplan {

/// What `measured.memory` of a cluster says, as `zeroplan probe` writes it: context, modules and
/// cuBLAS together, and each communicator's steps together; nothing where it is absent. They are
/// differences of free memory, which another process may have made negative: such a sum counts as
/// none. Throws InputError where they are no integers.
MeasuredOverheads read_measured_overheads(const JsonObject& cluster);

}  // namespace zeroplan
