#pragma once
// How much the slowest of many GPUs delays a step.

#include "cost_model/question/cluster.hpp"

namespace zeroplan {

/// What waiting for the slowest of many GPUs adds to a step, as a part of it.
double straggling_part(const ClusterSpec& cluster);

}  // namespace zeroplan
