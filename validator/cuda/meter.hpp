#pragma once
// All memory of one GPU that this process takes goes through here, so that it can be accounted for.

#include <mutex>
#include <unordered_map>
#include <utility>

#include "gpu_probe/cuda/check.hpp"
#include "validator/cuda/closing.hpp"
#include "validator/cuda/pages.hpp"

namespace zeroplan::engine {

enum class Allocation {
  exact,   // one allocation of the driver a tensor; freeing waits for the whole GPU
  pooled,  // in the order of a stream: for ranks of which something may still be on its way
};

/// What is free on a GPU; it becomes the calling thread's. Throws EnvironmentError.
Bytes free_on(std::int64_t gpu);

/// Shared by the ranks (threads) on one GPU. Every function throws EnvironmentError.
class Meter {
 public:
  /// Makes the context, loads our kernels and, for Allocation::exact, measures its pages. To be
  /// called before anything else uses the GPU.
  Meter(int device, Allocation how);
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  /// Makes the GPU the calling thread's.
  void use() const { check(cudaSetDevice(device_), "cudaSetDevice"); }

  /// Memory of a tensor, for use in the order of `stream`.
  void* allocate(std::int64_t bytes, const CudaStream& stream);
  /// Gives it back once the stream has done what was enqueued before.
  void release(void* memory, const CudaStream& stream) noexcept;

  /// A copy of a message on its way, which belongs to no ledger. With Allocation::pooled alone.
  static void* allocate_message(std::size_t bytes, const CudaStream& stream);
  static void release_message(void* message, const CudaStream& stream);

  /// Books what `work` makes a library allocate under `part`. `work` ends synchronized.
  template <class Work>
  void book(Bytes Closing::*part, Work&& work) {
    const std::lock_guard lock(mutex_);
    const std::size_t before = free_memory();
    std::forward<Work>(work)();
    now_.*part += fallen(before, free_memory());
  }

  /// When tensors took most, the last time: the first step loads what libraries put off.
  Closing closing() const;

 private:
  static Bytes fallen(std::size_t before, std::size_t after) {
    return Bytes{static_cast<std::int64_t>(before) - static_cast<std::int64_t>(after)};
  }
  void* allocate_of(std::size_t bytes, const CudaStream& stream) const;
  void note_peak();

  int device_;
  Allocation how_;
  cudaMemPool_t pool_ = nullptr;
  mutable std::mutex mutex_;  // of all below, and of every allocation
  Closing now_, peak_;
  Pages pages_;
  std::unordered_map<void*, Bytes> taken_;
};

}  // namespace zeroplan::engine
