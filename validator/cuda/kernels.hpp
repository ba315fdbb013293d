#pragma once
// The kernels that CudaDevice and CudaLoopback bring, as CUDA knows them.

#include <vector>

#include "validator/device/device.hpp"

namespace zeroplan::engine {

using Kernels = std::vector<const void*>;
Kernels adam_kernels();
Kernels attention_kernels();
Kernels elementwise_kernels();
Kernels embedding_kernels();
Kernels loss_kernels();
Kernels norm_kernels();
Kernels product_kernels();
Kernels reduction_kernels();

/// Loads them all, which CUDA puts off until the first launch: in the middle of a step.
void load_kernels();

}  // namespace zeroplan::engine
