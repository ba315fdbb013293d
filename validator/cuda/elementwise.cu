// What is computed element by element, or column by column? Front doors: CudaDevice::add and
// CudaDevice::activation.
#include "validator/cuda/cuda_device.hpp"
#include "validator/cuda/device_code.cuh"
#include "validator/cuda/kernels.hpp"

namespace zeroplan::engine {
namespace {

__global__ void add_kernel(Half to, ConstHalf from) {
  for (std::int64_t i = grid_first(); i < to.rows * to.columns; i += grid_stride()) {
    to.data[i] = narrowed(wide(to.data[i]) + wide(from.data[i]));
  }
}

__global__ void add_bias_kernel(Half y, ConstHalf bias) {
  for (std::int64_t i = grid_first(); i < y.rows * y.columns; i += grid_stride()) {
    y.data[i] = narrowed(wide(y.data[i]) + wide(bias.data[i % y.columns]));
  }
}

// A thread a column: rows add up in their order.
__global__ void bias_gradient_kernel(ConstHalf dy, Half dbias) {
  for (std::int64_t j = grid_first(); j < dy.columns; j += grid_stride()) {
    float sum = 0;
    for (std::int64_t i = 0; i < dy.rows; ++i) sum += wide(dy.data[i * dy.columns + j]);
    dbias.data[j] = narrowed(wide(dbias.data[j]) + sum);
  }
}

__device__ float sigmoid(float x) {
  return 1.0F / (1.0F + expf(-x));
}

// GELU by tanh (Hendrycks and Gimpel 2016).
constexpr float root_two_over_pi = 0.7978845608F;
constexpr float cubic = 0.044715F;

__device__ float bent(float x) {
  return tanhf(root_two_over_pi * (x + cubic * x * x * x));
}

__device__ float gelu_slope(float x) {
  const float t = bent(x);
  const float inner = root_two_over_pi * (1.0F + 3.0F * cubic * x * x);
  return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * inner;
}

__global__ void activation_kernel(ConstHalf x, Half y) {
  const bool gated = x.columns == 2 * y.columns;
  for (std::int64_t i = grid_first(); i < y.rows * y.columns; i += grid_stride()) {
    const Bf16* in = x.data + i / y.columns * x.columns + i % y.columns;
    const float first = wide(in[0]);
    y.data[i] = narrowed(gated ? first * sigmoid(first) * wide(in[y.columns])
                               : 0.5F * first * (1.0F + bent(first)));
  }
}

__global__ void activation_gradient_kernel(ConstHalf dy, ConstHalf x, Half dx) {
  const std::int64_t width = dy.columns;
  const bool gated = x.columns == 2 * width;
  for (std::int64_t i = grid_first(); i < dy.rows * width; i += grid_stride()) {
    const std::int64_t at = i / width * x.columns + i % width;
    const float gradient = wide(dy.data[i]);
    const float first = wide(x.data[at]);
    if (!gated) {
      dx.data[at] = narrowed(gradient * gelu_slope(first));
      continue;
    }
    const float s = sigmoid(first);
    const float up = wide(x.data[at + width]);
    dx.data[at] = narrowed(gradient * up * s * (1.0F + first * (1.0F - s)));
    dx.data[at + width] = narrowed(gradient * first * s);
  }
}

}  // namespace

void CudaDevice::add(Half to, ConstHalf from) {
  add_kernel<<<blocks_for(to.elements()), block_threads, 0, stream_->get()>>>(to, from);
  check_launch("add kernel");
}

void CudaDevice::add_bias(Half y, ConstHalf bias) {
  add_bias_kernel<<<blocks_for(y.elements()), block_threads, 0, stream_->get()>>>(y, bias);
  check_launch("bias kernel");
}

void CudaDevice::bias_gradient(ConstHalf dy, Half dbias) {
  bias_gradient_kernel<<<blocks_for(dy.columns), block_threads, 0, stream_->get()>>>(dy, dbias);
  check_launch("bias gradient kernel");
}

void CudaDevice::activation(ConstHalf x, Half y) {
  activation_kernel<<<blocks_for(y.elements()), block_threads, 0, stream_->get()>>>(x, y);
  check_launch("activation kernel");
}

void CudaDevice::activation_gradient(ConstHalf dy, ConstHalf x, Half dx) {
  activation_gradient_kernel<<<blocks_for(dy.elements()), block_threads, 0, stream_->get()>>>(dy, x,
                                                                                              dx);
  check_launch("activation gradient kernel");
}

Kernels elementwise_kernels() {
  return {reinterpret_cast<const void*>(add_kernel), reinterpret_cast<const void*>(add_bias_kernel),
          reinterpret_cast<const void*>(bias_gradient_kernel),
          reinterpret_cast<const void*>(activation_kernel),
          reinterpret_cast<const void*>(activation_gradient_kernel)};
}

}  // namespace zeroplan::engine
