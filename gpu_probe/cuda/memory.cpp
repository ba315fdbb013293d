// What lies in device memory before the first tensor? Front doors: measure_memory, allocation_step.
#include <cuda.h>

#include "gpu_probe/cuda/check.hpp"
#include "gpu_probe/cuda/kernels.hpp"
#include "gpu_probe/cuda/matrix_product.hpp"
#include "gpu_probe/cuda/parts.hpp"

namespace zeroplan {
namespace {

Bytes fallen(std::size_t before, std::size_t after) {
  return Bytes{static_cast<std::int64_t>(before) - static_cast<std::int64_t>(after)};
}

// The driver is not linked: without it this program would not even start.
template <class Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  check(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result), name);
  return result == cudaDriverEntryPointSuccess ? reinterpret_cast<Function>(found) : nullptr;
}

Bytes granularity(CUmemAllocationGranularity_flags which) {
  const auto query =
      driver_function<decltype(&cuMemGetAllocationGranularity)>("cuMemGetAllocationGranularity");
  if (query == nullptr) return {};
  CUmemAllocationProp wanted{};
  wanted.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = 0;
  std::size_t bytes = 0;
  return query(&bytes, &wanted, which) == CUDA_SUCCESS ? Bytes{bytes} : Bytes{};
}

Bytes first_product(const CudaStream& stream) {
  const std::size_t before = free_memory();
  const ProductLibrary library;
  constexpr std::int64_t side = 512;
  MatrixProduct product(library, {.m = side, .n = side, .k = side}, stream);
  product.run(stream);
  stream.synchronize();
  const auto own = static_cast<std::int64_t>(ProductLibrary::workspace_bytes);
  const Bytes matrices{3 * 8 * 2 * side * side};  // MatrixProduct's eight sets
  return fallen(before, free_memory()) - Bytes{own} - matrices;
}

}  // namespace

// Small allocations share a page until it is full: allocates single bytes until free memory moves
// twice, and takes the second step.
Bytes allocation_step() {
  constexpr int most = 100'000;
  std::vector<DeviceMemory> kept;
  std::size_t before = free_memory();
  for (int steps = 0, i = 0; i < most; ++i) {
    kept.emplace_back(1);
    const std::size_t now = free_memory();
    if (now == before) continue;
    if (++steps == 2) return fallen(before, now);
    before = now;
  }
  return {};
}

// Halves the size until several blocks share what they take.
Bytes whole_page_from(Bytes page) {
  constexpr int blocks = 8;
  Bytes alone = page;
  for (std::int64_t size = page.count() / 2; size > 0; size /= 2) {
    std::vector<DeviceMemory> kept;
    const std::size_t before = free_memory();
    for (int i = 0; i < blocks; ++i) kept.emplace_back(static_cast<std::size_t>(size));
    if (fallen(before, free_memory()) < blocks * page) break;
    alone = Bytes{size};
  }
  return alone;
}

MemoryFacts measure_memory() {
  check(cudaSetDevice(0), "cudaSetDevice");
  check(cudaFree(nullptr), "cudaFree");
  MemoryFacts facts;
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  facts.total = Bytes{total};
  facts.context = fallen(total, free);  // what other processes hold is in it
  kernels::load_all();
  const std::size_t loaded = free_memory();
  facts.modules = fallen(free, loaded);
  const CudaStream stream;
  facts.cublas = first_product(stream);
  facts.allocation_step = allocation_step();
  facts.minimum_granularity = granularity(CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  facts.recommended_granularity = granularity(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  return facts;
}

}  // namespace zeroplan
