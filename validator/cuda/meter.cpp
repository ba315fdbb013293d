// What did a GPU's memory go to? Front door: Meter.
#include "validator/cuda/meter.hpp"

#include <fmt/format.h>

#include <limits>

#include "gpu_probe/cuda/parts.hpp"
#include "validator/cuda/kernels.hpp"
#include "validator/device/ledger.hpp"

namespace zeroplan::engine {

Bytes free_on(std::int64_t gpu) {
  check(cudaSetDevice(static_cast<int>(gpu)), "cudaSetDevice");
  return Bytes{free_memory()};
}

Meter::Meter(int device, Allocation how) : device_(device), how_(how) {
  use();
  check(cudaFree(nullptr), "cudaFree");
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  now_.context = fallen(total, free);
  book(&Closing::modules, [] { load_kernels(); });
  if (how_ == Allocation::exact) {
    book(&Closing::context, [&] {
      const Bytes page = allocation_step();
      pages_ = Pages(page, whole_page_from(page));
    });
    return;
  }
  check(cudaDeviceGetDefaultMemPool(&pool_, device_), "cudaDeviceGetDefaultMemPool");
  // What was freed stays reserved: free memory then shows the highest moment.
  std::uint64_t all = std::numeric_limits<std::uint64_t>::max();
  check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &all),
        "cudaMemPoolSetAttribute");
  // No tensor waits until a message has been received: its receiver may wait for us.
  int no = 0;
  check(cudaMemPoolSetAttribute(pool_, cudaMemPoolReuseAllowInternalDependencies, &no),
        "cudaMemPoolSetAttribute");
}

void* Meter::allocate_of(std::size_t bytes, const CudaStream& stream) const {
  void* memory = nullptr;
  const char* call = how_ == Allocation::exact ? "cudaMalloc" : "cudaMallocAsync";
  const cudaError_t status = how_ == Allocation::exact
                                 ? cudaMalloc(&memory, bytes)
                                 : cudaMallocAsync(&memory, bytes, stream.get());
  if (status != cudaSuccess) {
    check(status, fmt::format("{} of {} bytes beside {} bytes of tensors", call, bytes,
                              now_.tensors.count())
                      .c_str());
  }
  return memory;
}

void* Meter::allocate(std::int64_t bytes, const CudaStream& stream) {
  const std::int64_t whole = round_up(bytes, Ledger::alignment);
  const std::lock_guard lock(mutex_);
  void* memory = allocate_of(static_cast<std::size_t>(whole), stream);
  taken_[memory] = Bytes{whole};
  now_.tensors += Bytes{whole};
  pages_.take(Bytes{whole});
  if (now_.tensors >= peak_.tensors) note_peak();
  return memory;
}

void Meter::note_peak() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  now_.used = fallen(total, free);
  now_.pages = pages_.beyond();
  if (pool_ != nullptr) {
    std::uint64_t reserved = 0;
    check(cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved),
          "cudaMemPoolGetAttribute");
    now_.pool = Bytes{static_cast<std::int64_t>(reserved)} - now_.tensors;
  }
  peak_ = now_;
}

// A call that fails here fails again in the next one that may throw: CUDA's errors stay.
void Meter::release(void* memory, const CudaStream& stream) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = taken_.find(memory);
  if (found == taken_.end()) return;
  if (how_ == Allocation::exact) {
    cudaStreamSynchronize(stream.get());
    cudaFree(memory);
  } else {
    cudaFreeAsync(memory, stream.get());
  }
  now_.tensors -= found->second;
  pages_.give(found->second);
  taken_.erase(found);
}

void* Meter::allocate_message(std::size_t bytes, const CudaStream& stream) {
  void* message = nullptr;
  check(cudaMallocAsync(&message, bytes, stream.get()), "cudaMallocAsync");
  return message;
}

void Meter::release_message(void* message, const CudaStream& stream) {
  check(cudaFreeAsync(message, stream.get()), "cudaFreeAsync");
}

Closing Meter::closing() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

}  // namespace zeroplan::engine
