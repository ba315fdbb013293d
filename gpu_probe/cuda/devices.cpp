// Which GPUs does this process see, by the CUDA runtime? Front door: visible_devices.
#include <fmt/format.h>

#include "gpu_probe/cuda/check.hpp"
#include "gpu_probe/devices.hpp"

namespace zeroplan {
namespace {

Device read_device(int index) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  check(cudaSetDevice(index), "cudaSetDevice");
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return {.name = properties.name,
          .compute_capability = 10 * properties.major + properties.minor,
          .memory = Bytes{total},
          .free = Bytes{free}};
}

}  // namespace

int device_count() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "no GPU: cudaGetDeviceCount");
  if (count == 0) throw EnvironmentError("no GPU is visible to this process");
  return count;
}

std::vector<Device> visible_devices() {
  const int count = device_count();
  std::vector<Device> devices;
  for (int index = 0; index < count; ++index) devices.push_back(read_device(index));
  return devices;
}

}  // namespace zeroplan
