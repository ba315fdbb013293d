// How fast are the planner's matrix products? Front door: measure_gemms.
#include "gpu_probe/cuda/matrix_product.hpp"
#include "gpu_probe/cuda/parts.hpp"
#include "gpu_probe/cuda/timing.hpp"

namespace zeroplan {

std::vector<GemmSamples> measure_gemms(const std::vector<Gemm>& gemms) {
  check(cudaSetDevice(0), "cudaSetDevice");
  const CudaStream stream;
  const ProductLibrary library;
  std::vector<GemmSamples> all;
  for (const Gemm& gemm : gemms) {
    MatrixProduct product(library, gemm, stream);
    constexpr Repetition long_enough{.warm_ups = 20, .samples = 9, .sample_seconds = 0.05};
    all.push_back({gemm, timed(
                             stream, [&] { product.run(stream); }, long_enough)});
  }
  return all;
}

}  // namespace zeroplan
