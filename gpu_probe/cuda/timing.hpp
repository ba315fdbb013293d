#pragma once
// How long one execution takes on the device, host and launches left out.

#include <functional>

#include "gpu_probe/cuda/check.hpp"
#include "gpu_probe/facts.hpp"

namespace zeroplan {

struct Repetition {
  int warm_ups = 5;
  int samples = 9;
  int most_launches = 64;         // of a sample: more would fill the launch queue behind the gate
  double sample_seconds = 0.005;  // aimed at
  bool behind_gate = true;        // false: for work that the driver may do before it returns
};

/// Enqueues `work` on the stream again and again, behind a gate that opens when all of a sample is
/// enqueued (without one the host's pauses between launches are in it), and returns the mean of
/// each sample.
Samples timed(const CudaStream& stream, const std::function<void()>& work, Repetition r = {});

}  // namespace zeroplan
