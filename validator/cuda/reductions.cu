// How do several ranks' buffers become one? Front door: combine_bf16.
#include "validator/cuda/reductions.hpp"

#include "validator/cuda/device_code.cuh"
#include "validator/cuda/kernels.hpp"

namespace zeroplan::engine {
namespace {

// Given to a kernel by value.
struct Buffers {
  void* at[most_buffers];
  int count;
};

Buffers given(const std::vector<void*>& list) {
  Buffers buffers{};
  for (void* buffer : list) buffers.at[buffers.count++] = buffer;
  return buffers;
}

__device__ float read(const Bf16* from, std::int64_t i) {
  return wide(from[i]);
}
__device__ float read(const float* from, std::int64_t i) {
  return from[i];
}
__device__ void write(Bf16* to, std::int64_t i, float value) {
  to[i] = narrowed(value);
}
__device__ void write(float* to, std::int64_t i, float value) {
  to[i] = value;
}

template <class Value>
__device__ float combined(const Buffers& buffers, std::int64_t i, bool sum) {
  float result = read(static_cast<const Value*>(buffers.at[0]), i);
  for (int r = 1; r < buffers.count; ++r) {
    const float next = read(static_cast<const Value*>(buffers.at[r]), i);
    result = sum ? result + next : fmaxf(result, next);
  }
  return result;
}

template <class Value>
__global__ void combine_kernel(Buffers buffers, std::int64_t first, std::int64_t last, bool sum) {
  for (std::int64_t i = first + grid_first(); i < last; i += grid_stride()) {
    const float value = combined<Value>(buffers, i, sum);
    for (int r = 0; r < buffers.count; ++r) write(static_cast<Value*>(buffers.at[r]), i, value);
  }
}

__global__ void sum_into_kernel(Bf16* to, Buffers buffers, std::int64_t first, std::int64_t last) {
  for (std::int64_t i = first + grid_first(); i < last; i += grid_stride()) {
    to[i] = narrowed(combined<Bf16>(buffers, i, true));
  }
}

}  // namespace

void combine_bf16(const std::vector<void*>& buffers,
                  std::int64_t first,
                  std::int64_t last,
                  const CudaStream& stream) {
  combine_kernel<Bf16><<<blocks_for(last - first), block_threads, 0, stream.get()>>>(
      given(buffers), first, last, true);
  check_launch("all-reduce kernel");
}

void combine_fp32(const std::vector<void*>& buffers,
                  std::int64_t first,
                  std::int64_t last,
                  Reduction reduction,
                  const CudaStream& stream) {
  combine_kernel<float><<<blocks_for(last - first), block_threads, 0, stream.get()>>>(
      given(buffers), first, last, reduction == Reduction::sum);
  check_launch("all-reduce kernel");
}

void sum_into_bf16(Bf16* to,
                   const std::vector<void*>& buffers,
                   std::int64_t first,
                   std::int64_t last,
                   const CudaStream& stream) {
  sum_into_kernel<<<blocks_for(last - first), block_threads, 0, stream.get()>>>(to, given(buffers),
                                                                                first, last);
  check_launch("reduce-scatter kernel");
}

Kernels reduction_kernels() {
  return {reinterpret_cast<const void*>(combine_kernel<Bf16>),
          reinterpret_cast<const void*>(combine_kernel<float>),
          reinterpret_cast<const void*>(sum_into_kernel)};
}

}  // namespace zeroplan::engine
