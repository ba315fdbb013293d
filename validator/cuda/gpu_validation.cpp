// Was the prediction right on a GPU? Front door: validate_on_gpus.
#include "validator/cuda/gpu_validation.hpp"

#include <algorithm>

namespace zeroplan::engine {

bool GpuValidation::agrees() const {
  return validation.agrees() &&
         std::all_of(closings.begin(), closings.end(), [](const Closing& c) { return c.closes(); });
}

GpuValidation validate_on_gpus(Shrunk full, Shrunk small, const GpuRunner& run) {
  GpuValidation result;
  result.validation =
      validated(std::move(full), std::move(small), [&](const Problem& problem, Asked asked) {
        GpuRun one = run(problem, asked);
        if (result.closings.empty()) result.closings = std::move(one.closings);
        return std::move(one.report);
      });
  return result;
}

}  // namespace zeroplan::engine
