// What did the library say? Front door: check.
#include "gpu_probe/cuda/check.hpp"

#include <fmt/format.h>

#include "gpu_probe/cuda/watchdog.hpp"
#include "gpu_probe/environment_error.hpp"

namespace zeroplan {

void check(cudaError_t status, const char* call) {
  Watchdog::returned();
  if (status == cudaSuccess) return;
  throw EnvironmentError(fmt::format("{}: {}", call, cudaGetErrorString(status)));
}

void check(cublasStatus_t status, const char* call) {
  Watchdog::returned();
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw EnvironmentError(fmt::format("{}: {}", call, cublasLtGetStatusString(status)));
}

void check(ncclResult_t status, const char* call) {
  Watchdog::returned();
  if (status == ncclSuccess) return;
  const char* detail = ncclGetLastError(nullptr);
  throw EnvironmentError(fmt::format("{}: {}{}{}", call, ncclGetErrorString(status),
                                     *detail == '\0' ? "" : ": ", detail));
}

double seconds_between(const CudaEvent& begin, const CudaEvent& end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "cudaEventElapsedTime");
  return 1e-3 * static_cast<double>(milliseconds);
}

std::size_t free_memory() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return free;
}

}  // namespace zeroplan
