#pragma once
// Round numbers along an axis.

namespace zeroplan {

/// The least round number (1, 2 or 5 times a power of ten) of which `span` has at most `steps`.
double round_step(double span, int steps);

}  // namespace zeroplan
