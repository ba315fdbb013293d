#pragma once
// What operators take beyond those that they call. Private to this folder.

#include <vector>

#include "validator/overlay/trace.hpp"

namespace zeroplan {

/// The seconds of each of `chosen`, which index `events` in order of their start, less those of the
/// ones directly within it on its thread.
std::vector<double> self_seconds(const std::vector<TraceEvent>& events,
                                 const std::vector<std::size_t>& chosen);

}  // namespace zeroplan
