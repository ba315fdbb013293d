#pragma once
// A prediction beside what really happened on GPUs.

#include <functional>

#include "validator/cuda/gpu_run.hpp"
#include "validator/validation.hpp"

namespace zeroplan::engine {

struct GpuValidation {
  Validation validation;
  std::vector<Closing> closings;  // by GPU, of the first run

  bool agrees() const;
};

/// Runs a problem; the same way each time.
using GpuRunner = std::function<GpuRun(const Problem&, Asked)>;

/// What validate_on_host does, with ranks on GPUs. `small` is what is to be run of `full`.
GpuValidation validate_on_gpus(Shrunk full, Shrunk small, const GpuRunner& run);

}  // namespace zeroplan::engine
