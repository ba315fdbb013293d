#pragma once
// Every call of a GPU library goes through one of these, and what it made is given back.

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <nccl.h>

#include <cstddef>
#include <utility>

namespace zeroplan {

// Each throws EnvironmentError with the call and what the library says about its status.
void check(cudaError_t status, const char* call);
void check(cublasStatus_t status, const char* call);
void check(ncclResult_t status, const char* call);

/// Device memory, uninitialised.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::size_t bytes) { check(cudaMalloc(&data_, bytes), "cudaMalloc"); }
  DeviceMemory(DeviceMemory&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  ~DeviceMemory() { cudaFree(data_); }
  void* get() const { return data_; }

 private:
  void* data_ = nullptr;
};

/// Page-locked host memory.
class PinnedMemory {
 public:
  explicit PinnedMemory(std::size_t bytes) {
    check(cudaHostAlloc(&data_, bytes, cudaHostAllocMapped), "cudaHostAlloc");
  }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  ~PinnedMemory() { cudaFreeHost(data_); }
  void* get() const { return data_; }

 private:
  void* data_ = nullptr;
};

class CudaStream {
 public:
  CudaStream() {
    check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  }
  CudaStream(CudaStream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  CudaStream& operator=(CudaStream&&) = delete;
  ~CudaStream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  cudaStream_t get() const { return stream_; }
  void synchronize() const { check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

 private:
  cudaStream_t stream_ = nullptr;
};

class CudaEvent {
 public:
  CudaEvent() { check(cudaEventCreate(&event_), "cudaEventCreate"); }
  CudaEvent(CudaEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  CudaEvent& operator=(CudaEvent&&) = delete;
  ~CudaEvent() {
    if (event_ != nullptr) cudaEventDestroy(event_);
  }
  cudaEvent_t get() const { return event_; }
  void record(const CudaStream& stream) const {
    check(cudaEventRecord(event_, stream.get()), "cudaEventRecord");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Seconds from one event to the other, both passed.
double seconds_between(const CudaEvent& begin, const CudaEvent& end);

/// Bytes that a process could still allocate on the current device.
std::size_t free_memory();

}  // namespace zeroplan
