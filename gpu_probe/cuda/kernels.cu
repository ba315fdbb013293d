// Plain memory traffic, and a gate. Front doors: see kernels.hpp.
#include <cuda_bf16.h>

#include "gpu_probe/cuda/check.hpp"
#include "gpu_probe/cuda/kernels.hpp"

namespace zeroplan::kernels {
namespace {

constexpr int threads = 256;
constexpr int blocks = 4096;  // several of each multiprocessor's

__device__ std::size_t first() {
  return blockIdx.x * static_cast<std::size_t>(blockDim.x) + threadIdx.x;
}

__device__ std::size_t stride() {
  return static_cast<std::size_t>(gridDim.x) * blockDim.x;
}

__global__ void hold_kernel(const volatile int* open) {
  while (*open == 0) {
  }
}

__global__ void copy_kernel(uint4* to, const uint4* from, std::size_t words) {
  for (std::size_t i = first(); i < words; i += stride()) to[i] = from[i];
}

__global__ void read_kernel(const uint4* from, std::size_t words, uint4* sink) {
  uint4 sum{0, 0, 0, 0};
  for (std::size_t i = first(); i < words; i += stride()) {
    const uint4 word = from[i];
    sum.x ^= word.x;
    sum.y ^= word.y;
    sum.z ^= word.z;
    sum.w ^= word.w;
  }
  // Never true in practice, but the compiler cannot drop the reads.
  if ((sum.x & sum.y & sum.z & sum.w) == 0x5a5a5a5a) *sink = sum;
}

__global__ void write_kernel(uint4* to, std::size_t words) {
  const auto value = static_cast<unsigned>(first());
  for (std::size_t i = first(); i < words; i += stride()) to[i] = {value, value, value, value};
}

// SplitMix64 of the index.
__global__ void fill_kernel(__nv_bfloat16* to, std::size_t elements, std::uint64_t seed) {
  for (std::size_t i = first(); i < elements; i += stride()) {
    std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    z ^= z >> 31;
    to[i] = __float2bfloat16(static_cast<float>(static_cast<std::int32_t>(z)) * 0x1p-31F);
  }
}

void check_launch(const char* kernel) {
  check(cudaGetLastError(), kernel);
}

}  // namespace

void hold(const volatile int* open, cudaStream_t stream) {
  hold_kernel<<<1, 1, 0, stream>>>(open);
  check_launch("hold kernel");
}

void copy(void* to, const void* from, std::size_t words, cudaStream_t stream) {
  copy_kernel<<<blocks, threads, 0, stream>>>(static_cast<uint4*>(to),
                                              static_cast<const uint4*>(from), words);
  check_launch("copy kernel");
}

void read(const void* from, std::size_t words, void* sink, cudaStream_t stream) {
  read_kernel<<<blocks, threads, 0, stream>>>(static_cast<const uint4*>(from), words,
                                              static_cast<uint4*>(sink));
  check_launch("read kernel");
}

void write(void* to, std::size_t words, cudaStream_t stream) {
  write_kernel<<<blocks, threads, 0, stream>>>(static_cast<uint4*>(to), words);
  check_launch("write kernel");
}

void fill_random(void* to, std::size_t elements, std::uint64_t seed, cudaStream_t stream) {
  fill_kernel<<<blocks, threads, 0, stream>>>(static_cast<__nv_bfloat16*>(to), elements, seed);
  check_launch("fill kernel");
}

void load_all() {
  const void* const all[] = {
      reinterpret_cast<const void*>(hold_kernel), reinterpret_cast<const void*>(copy_kernel),
      reinterpret_cast<const void*>(read_kernel), reinterpret_cast<const void*>(write_kernel),
      reinterpret_cast<const void*>(fill_kernel)};
  for (const void* kernel : all) {
    cudaFuncAttributes attributes{};
    check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  }
}

}  // namespace zeroplan::kernels
