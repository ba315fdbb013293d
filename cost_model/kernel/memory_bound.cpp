// How long does moving bytes take? Front door: memory_bound_seconds.
#include "cost_model/kernel/memory_bound.hpp"

#include "cost_model/kernel/time_constants.hpp"

namespace zeroplan {

double memory_bound_seconds(Bytes moved, Access access, const GpuSpec& gpu) {
  if (moved <= Bytes{}) return 0;
  const kernels::Shared& shared = time_constants(gpu).kernels;
  const kernels::MemorySpeed& speed = generation_of(gpu).memory;
  const double share = access == Access::permute ? speed.permute
                       : access == Access::scan  ? speed.scan
                                                 : speed.streaming;
  const double rate = access == Access::scatter
                          ? shared.scatter_rate
                          : share * gpu.memory_speed * gpu.memory_bandwidth;
  return shared.memory_start + static_cast<double>(moved.count()) / rate;
}

}  // namespace zeroplan
