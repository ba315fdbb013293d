// Which numbers stand at an axis? Front door: round_step.
#include "cli/out/axis.hpp"

#include <algorithm>
#include <cmath>

namespace zeroplan {

double round_step(double span, int steps) {
  const double raw = std::max(span, 1e-12) / steps;
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double round : {1.0, 2.0, 5.0}) {
    if (round * power >= raw) return round * power;
  }
  return 10 * power;
}

}  // namespace zeroplan
