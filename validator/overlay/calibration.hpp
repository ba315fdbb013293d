#pragma once
// A cluster with the speeds that a profiled step shows.

#include <string>
#include <vector>

#include "cost_model/question/problem.hpp"
#include "validator/overlay/measured_step.hpp"
#include "validator/overlay/overlay.hpp"

namespace zeroplan {

struct Calibration {
  ClusterSpec cluster;
  double seconds = 0;              // of the plan's step on it, as predicted
  std::vector<std::string> taken;  // a sentence each: what of the trace is in it
  std::vector<std::string> left;   // and what is not, and why
};

/// The problem's cluster, where the trace has enough of a kind of work (5 % of the step, of
/// collectives 0.5 %) with: the speed of products and that of memory at which the prediction takes
/// what was measured of products and attention together, which share it, and of memory-bound
/// kernels; of each collective over groups of a size, the times of the law of collectives (or of
/// the cluster's own table) scaled by what the trace's took; the slower direction of copies to and
/// from the host. The optimizer runs at memory's speed, as in the law.
Calibration calibrated(const Problem& problem,
                       const MeasuredStep& measured,
                       const Overlay& overlay,
                       std::int64_t stage);

}  // namespace zeroplan
