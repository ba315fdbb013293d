#pragma once
// A kernel of a recorded step, from JSON. Private to this room.

#include "cost_model/program/operator.hpp"
#include "presets/strict_json.hpp"

namespace zeroplan {

/// Bytes of a tensor, a message or what a kernel moves: more is a mistake.
inline constexpr Range any_bytes{1, std::int64_t{1} << 50};

/// The work and format of a kernel; the names are left to the caller. Throws InputError.
Operator read_operator(const JsonObject& json);

}  // namespace zeroplan
