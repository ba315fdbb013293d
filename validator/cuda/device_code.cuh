#pragma once
// What kernels share: bf16, sums over a block, and how many threads to start.

#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>

#include "gpu_probe/cuda/check.hpp"
#include "validator/device/device.hpp"

namespace zeroplan::engine {

constexpr int block_threads = 256;

__device__ inline float wide(Bf16 value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16U);
}

/// To the nearest, ties to even, as on the host.
__device__ inline Bf16 narrowed(float value) {
  return {__bfloat16_as_ushort(__float2bfloat16_rn(value))};
}

/// The sum of every thread's value, in every thread, always in the same order.
__device__ inline float block_sum(float own) {
  __shared__ float sums[block_threads];
  __syncthreads();  // readers of the last sum
  sums[threadIdx.x] = own;
  for (int half = block_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
  }
  __syncthreads();
  return sums[0];
}

__device__ inline float block_maximum(float own) {
  __shared__ float most[block_threads];
  __syncthreads();
  most[threadIdx.x] = own;
  for (int half = block_threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      most[threadIdx.x] = fmaxf(most[threadIdx.x], most[threadIdx.x + half]);
    }
  }
  __syncthreads();
  return most[0];
}

// Threads of a grid that share out a range of elements.
__device__ inline std::int64_t grid_first() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t grid_stride() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

/// Blocks for `elements` threads; at least one, and no more than keep any GPU busy.
inline unsigned blocks_for(std::int64_t elements) {
  constexpr std::int64_t most = 65'536;
  return static_cast<unsigned>(
      std::clamp<std::int64_t>((elements + block_threads - 1) / block_threads, 1, most));
}

/// After each launch.
inline void check_launch(const char* kernel) {
  check(cudaGetLastError(), kernel);
}

}  // namespace zeroplan::engine
