// What is a norm on a GPU? Front door: CudaDevice::norm.
#include "validator/cuda/cuda_device.hpp"
#include "validator/cuda/device_code.cuh"
#include "validator/cuda/kernels.hpp"

namespace zeroplan::engine {
namespace {

constexpr float epsilon = 1e-5F;

// The two statistics of a row; without centring the mean is 0 and not stored.
struct RowStatistics {
  float mean, reciprocal;
};

__device__ RowStatistics read(ConstWide statistics, std::int64_t row) {
  const float* at = statistics.data + row * statistics.columns;
  return statistics.columns == 2 ? RowStatistics{at[0], at[1]} : RowStatistics{0, at[0]};
}

// A block a row.
__global__ void norm_kernel(ConstHalf x, NormWeights w, Half y, Wide statistics) {
  const std::int64_t width = x.columns;
  const auto row = static_cast<std::int64_t>(blockIdx.x);
  const Bf16* in = x.data + row * width;
  const bool centred = w.bias.rows > 0;
  float mean = 0;
  if (centred) {
    for (std::int64_t j = threadIdx.x; j < width; j += blockDim.x) mean += wide(in[j]);
    mean = block_sum(mean) / static_cast<float>(width);
  }
  float squares = 0;
  for (std::int64_t j = threadIdx.x; j < width; j += blockDim.x) {
    const float distance = wide(in[j]) - mean;
    squares += distance * distance;
  }
  squares = block_sum(squares);
  const float reciprocal = 1.0F / sqrtf(squares / static_cast<float>(width) + epsilon);
  if (threadIdx.x == 0) {
    float* kept = statistics.data + row * statistics.columns;
    if (centred) *kept++ = mean;
    *kept = reciprocal;
  }
  for (std::int64_t j = threadIdx.x; j < width; j += blockDim.x) {
    const float bias = centred ? wide(w.bias.data[j]) : 0.0F;
    y.data[row * width + j] =
        narrowed((wide(in[j]) - mean) * reciprocal * wide(w.weight.data[j]) + bias);
  }
}

// A block a row. With n = (x - mean) r and g = dy w: dx = r (g - mean(g) - n mean(g n)), without
// centring no mean(g).
__global__ void norm_gradient_kernel(
    ConstHalf dy, ConstHalf x, ConstWide statistics, NormWeights w, ConstHalf residual, Half dx) {
  const std::int64_t width = x.columns;
  const auto row = static_cast<std::int64_t>(blockIdx.x);
  const auto [mean, reciprocal] = read(statistics, row);
  const Bf16* in = x.data + row * width;
  const Bf16* up = dy.data + row * width;
  float sum = 0;
  float product = 0;
  for (std::int64_t j = threadIdx.x; j < width; j += blockDim.x) {
    const float gradient = wide(up[j]) * wide(w.weight.data[j]);
    sum += gradient;
    product += gradient * ((wide(in[j]) - mean) * reciprocal);
  }
  sum = block_sum(sum) / static_cast<float>(width);
  product = block_sum(product) / static_cast<float>(width);
  if (w.bias.rows == 0) sum = 0;
  for (std::int64_t j = threadIdx.x; j < width; j += blockDim.x) {
    const float normal = (wide(in[j]) - mean) * reciprocal;
    const float through =
        reciprocal * (wide(up[j]) * wide(w.weight.data[j]) - sum - normal * product);
    const std::int64_t at = row * width + j;
    const float beside = residual.data == nullptr ? 0.0F : wide(residual.data[at]);
    dx.data[at] = narrowed(beside + through);
  }
}

// A thread a column: rows add up in their order.
__global__ void norm_weight_gradient_kernel(ConstHalf dy,
                                            ConstHalf x,
                                            ConstWide statistics,
                                            NormWeights dw) {
  for (std::int64_t j = grid_first(); j < x.columns; j += grid_stride()) {
    float weight = 0;
    float bias = 0;
    for (std::int64_t i = 0; i < x.rows; ++i) {
      const RowStatistics s = read(statistics, i);
      const float gradient = wide(dy.data[i * x.columns + j]);
      weight += gradient * ((wide(x.data[i * x.columns + j]) - s.mean) * s.reciprocal);
      bias += gradient;
    }
    dw.weight.data[j] = narrowed(wide(dw.weight.data[j]) + weight);
    if (dw.bias.rows > 0) dw.bias.data[j] = narrowed(wide(dw.bias.data[j]) + bias);
  }
}

}  // namespace

void CudaDevice::norm(ConstHalf x, const NormWeights& w, Half y, Wide statistics) {
  norm_kernel<<<static_cast<unsigned>(x.rows), block_threads, 0, stream_->get()>>>(x, w, y,
                                                                                   statistics);
  check_launch("norm kernel");
}

void CudaDevice::norm_gradient(ConstHalf dy,
                               ConstHalf x,
                               ConstWide statistics,
                               const NormWeights& w,
                               ConstHalf residual,
                               Half dx,
                               const NormWeights& dw) {
  // The weights' first: dx may take the place of dy.
  norm_weight_gradient_kernel<<<blocks_for(x.columns), block_threads, 0, stream_->get()>>>(
      dy, x, statistics, dw);
  check_launch("norm weight gradient kernel");
  norm_gradient_kernel<<<static_cast<unsigned>(x.rows), block_threads, 0, stream_->get()>>>(
      dy, x, statistics, w, residual, dx);
  check_launch("norm gradient kernel");
}

Kernels norm_kernels() {
  return {reinterpret_cast<const void*>(norm_kernel),
          reinterpret_cast<const void*>(norm_gradient_kernel),
          reinterpret_cast<const void*>(norm_weight_gradient_kernel)};
}

}  // namespace zeroplan::engine
