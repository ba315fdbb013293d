// Which GPUs does this process see, by the CUDA runtime? Front door: visible_devices.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "gpu_probe/devices.hpp"

namespace zeroplan {
namespace {

void check(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  throw EnvironmentError(fmt::format("{}: {}", call, cudaGetErrorString(status)));
}

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

std::vector<Device> visible_devices() {
  int count = 0;
  check(cudaGetDeviceCount(&count), "no GPU: cudaGetDeviceCount");
  if (count == 0) throw EnvironmentError("no GPU is visible to this process");
  std::vector<Device> devices;
  devices.reserve(static_cast<std::size_t>(count));
  for (int index = 0; index < count; ++index) devices.push_back(read_device(index));
  return devices;
}

}  // namespace zeroplan
