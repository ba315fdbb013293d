#pragma once
// Front door of the measurements. Implemented where CUDA, cuBLASLt and NCCL were found.

#include <chrono>
#include <functional>
#include <string_view>
#include <vector>

#include "gpu_probe/facts.hpp"

namespace zeroplan {

struct ProbePlan {
  std::vector<Gemm> gemms;                              // in bf16
  Bytes largest_payload;                                // of collectives, and of copies
  std::function<void(std::string_view stage)> started;  // told before each part; may be empty
  std::chrono::seconds patience{120};                   // with a GPU that no longer answers
};

/// Measures every GPU that this process sees; takes a minute or two. Throws EnvironmentError
/// without a driver or a device, and when a call fails; where one never returns the program ends.
ProbeFacts probe_machine(const ProbePlan& plan);

}  // namespace zeroplan
