// How does a step change the parameters on a GPU? Front door: CudaDevice::adam.
#include <cmath>

#include "validator/cuda/cuda_device.hpp"
#include "validator/cuda/device_code.cuh"
#include "validator/cuda/kernels.hpp"

namespace zeroplan::engine {
namespace {

// An AdamStep in the numbers that an element needs.
struct Factors {
  float rate, beta1, beta2, epsilon, unbias1, unbias2;
};

__global__ void adam_kernel(
    ConstHalf gradients, Factors f, Wide master, Wide first, Wide second, Half parameters) {
  for (std::int64_t i = grid_first(); i < master.rows * master.columns; i += grid_stride()) {
    const float g = wide(gradients.data[i]);
    const float m = f.beta1 * first.data[i] + (1.0F - f.beta1) * g;
    const float v = f.beta2 * second.data[i] + (1.0F - f.beta2) * g * g;
    const float value =
        master.data[i] - f.rate * (m * f.unbias1) / (sqrtf(v * f.unbias2) + f.epsilon);
    first.data[i] = m;
    second.data[i] = v;
    master.data[i] = value;
    parameters.data[i] = narrowed(value);
  }
}

}  // namespace

// Kingma and Ba 2014, algorithm 1; master copy and moments fp32.
void CudaDevice::adam(ConstHalf gradients,
                      const AdamStep& step,
                      Wide master,
                      Wide first,
                      Wide second,
                      Half parameters) {
  const auto unbias = [&](double beta) {
    return static_cast<float>(1.0 / (1.0 - std::pow(beta, static_cast<double>(step.step))));
  };
  const Factors factors{static_cast<float>(step.rate),
                        static_cast<float>(step.beta1),
                        static_cast<float>(step.beta2),
                        static_cast<float>(step.epsilon),
                        unbias(step.beta1),
                        unbias(step.beta2)};
  adam_kernel<<<blocks_for(master.elements()), block_threads, 0, stream_->get()>>>(
      gradients, factors, master, first, second, parameters);
  check_launch("Adam kernel");
}

Kernels adam_kernels() {
  return {reinterpret_cast<const void*>(adam_kernel)};
}

}  // namespace zeroplan::engine
