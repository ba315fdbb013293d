// How long does moving bytes take? Front door: memory_bound_seconds.
#include "cost_model/time/memory_bound.hpp"

#include "cost_model/time/gpu_constants.hpp"

namespace zeroplan {

double memory_bound_seconds(Bytes moved, Access access, const GpuSpec& gpu) {
  if (moved <= Bytes{}) return 0;
  const kernels::MemorySpeed& speed = kernels::generation_of(gpu.compute_capability).memory;
  const double rate =
      access == Access::scatter
          ? kernels::scatter_rate
          : (access == Access::permute ? speed.permute : speed.streaming) * gpu.memory_bandwidth;
  return kernels::memory_start + static_cast<double>(moved.count()) / rate;
}

}  // namespace zeroplan
