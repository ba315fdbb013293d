// What does waiting for the slowest GPU add? Front door: straggling_part.
#include "cost_model/pipeline/straggling.hpp"

#include <algorithm>
#include <cmath>

#include "cost_model/kernel/time_constants.hpp"

namespace zeroplan {

double straggling_part(const ClusterSpec& cluster) {
  const double many = time_constants(cluster.gpu).step.straggling_from;
  const double doublings = std::log2(static_cast<double>(cluster.gpus) / many);
  return generation_of(cluster.gpu).straggling * std::max(0.0, doublings);
}

}  // namespace zeroplan
