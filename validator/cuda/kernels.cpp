// What is to be loaded? Front door: load_kernels.
#include "validator/cuda/kernels.hpp"

#include "gpu_probe/cuda/check.hpp"

namespace zeroplan::engine {

void load_kernels() {
  for (const auto kernels :
       {adam_kernels, attention_kernels, elementwise_kernels, embedding_kernels, loss_kernels,
        norm_kernels, product_kernels, reduction_kernels}) {
    for (const void* kernel : kernels()) {
      cudaFuncAttributes attributes{};
      check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
    }
  }
}

}  // namespace zeroplan::engine
