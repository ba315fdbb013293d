#pragma once
// A kernel of a recorded step, from JSON. Private to this room.

#include "cost_model/program/operator.hpp"
#include "presets/strict_json.hpp"

namespace zeroplan {

/// Its work and format; the names are left to the caller. Throws InputError.
Operator read_operator(const JsonObject& json);

}  // namespace zeroplan
