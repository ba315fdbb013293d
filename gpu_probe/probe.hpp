#pragma once
// Front door of the measurements. Implemented where CUDA, cuBLASLt and NCCL were found.

#include <functional>
#include <string_view>
#include <vector>

#include "gpu_probe/facts.hpp"

namespace zeroplan {

struct ProbePlan {
  std::vector<Gemm> gemms;                              // in bf16
  Bytes largest_payload;                                // of collectives, and of copies
  std::function<void(std::string_view stage)> started;  // told before each part; may be empty
};

/// Measures every GPU that this process sees; takes a minute or two. Throws EnvironmentError
/// without a driver or a device, and when a call fails.
ProbeFacts probe_machine(const ProbePlan& plan);

}  // namespace zeroplan
