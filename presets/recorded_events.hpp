#pragma once
// The events of a recorded step, from JSON. Private to this room.

#include "cost_model/program/recorded.hpp"
#include "presets/strict_json.hpp"

namespace zeroplan {

/// Puts groups, slots, calls, operators, passes and what is resident into `out`, each checked.
/// `gpus`: that groups are of. Throws InputError.
void read_events(const JsonObject& document, std::int64_t gpus, RecordedProgram& out);

}  // namespace zeroplan
