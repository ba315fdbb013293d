#pragma once
// Collectives as fast as a profiled step's. Private to this folder.

#include "validator/overlay/calibration.hpp"

namespace zeroplan {

/// Puts a table of each collective and kind of group that the trace has enough of into the cluster,
/// and says so.
void take_collectives(const Problem& problem,
                      const MeasuredStep& measured,
                      const Overlay& overlay,
                      Calibration& out);

}  // namespace zeroplan
