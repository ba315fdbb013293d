// The CUDA runtime without a device: memory is the host's, laid in pages as a driver lays it, work
// is done when it is asked for, and kernels do nothing.
#include <cuda_runtime.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "tests/fake_gpu/fault.hpp"
#include "tests/fake_gpu/order.hpp"

namespace {

using namespace zeroplan::fake;

constexpr std::size_t page = std::size_t{2} << 20U;
constexpr std::size_t small = std::size_t{1} << 20U;  // what is smaller shares pages
constexpr std::size_t context = std::size_t{64} << 20U;
constexpr std::size_t modules = std::size_t{4} << 20U;
constexpr std::size_t looked_at = std::size_t{64} << 20U;  // of a copy, at most
constexpr int most_devices = 16;

struct Block {
  std::size_t bytes;
  int device;
};

struct Gpu {
  std::size_t whole_pages = 0;
  std::size_t shared_bytes = 0;
  bool touched = false;
  bool loaded = false;

  std::size_t used() const {
    const std::size_t shared = (shared_bytes + page - 1) / page * page;
    return (touched ? context : 0) + (loaded ? modules : 0) + whole_pages + shared;
  }
};

std::mutex mutex;
std::unordered_map<void*, Block> blocks;
Gpu gpus[most_devices];
// Kernels register before any other object of this file is made.
std::map<const void*, std::string>& kernels() {
  static std::map<const void*, std::string> all;
  return all;
}
std::atomic<const volatile int*> gate{nullptr};  // that the last holding kernel waits at
std::atomic<bool> failed{false};
thread_local int current = 0;

std::size_t round_to(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

cudaError_t after(Fault fault) {
  if (fault == Fault::memory) return cudaErrorMemoryAllocation;
  if (fault == Fault::error) failed = true;
  return failed ? cudaErrorLaunchFailure : cudaSuccess;
}
cudaError_t call() {
  return after(at_call());
}

std::size_t total_memory() {
  return static_cast<std::size_t>(setting("FAKE_GPU_MEMORY", 80LL << 30U));
}

// Pages that nobody touched cost the host nothing.
void* host_pages(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

cudaError_t allocate(void** memory, std::size_t bytes) {
  if (const cudaError_t status = after(at_allocation()); status != cudaSuccess) return status;
  const std::lock_guard lock(mutex);
  Gpu& gpu = gpus[current];
  const Gpu before = gpu;
  const std::size_t own = round_to(std::max<std::size_t>(bytes, 1), bytes < small ? 512 : page);
  (bytes < small ? gpu.shared_bytes : gpu.whole_pages) += own;
  if (gpu.used() > total_memory()) {
    gpu = before;
    return cudaErrorMemoryAllocation;
  }
  *memory = bytes < small ? std::calloc(1, own) : host_pages(own);
  blocks[*memory] = {bytes, current};
  return cudaSuccess;
}

// In the order of a stream, or once all have passed.
void give_back(void* memory, cudaStream_t stream = nullptr) {
  const std::lock_guard lock(mutex);
  const auto found = blocks.find(memory);
  if (found == blocks.end()) return;
  const auto [bytes, device] = found->second;
  frees(stream, memory, bytes);
  const std::size_t own = round_to(std::max<std::size_t>(bytes, 1), bytes < small ? 512 : page);
  (bytes < small ? gpus[device].shared_bytes : gpus[device].whole_pages) -= own;
  bytes < small ? std::free(memory) : static_cast<void>(munmap(memory, own));
  blocks.erase(found);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Time {
  double at = 0;
};

}  // namespace

bool zeroplan::fake::broken() {
  return failed;
}

extern "C" {

// What a compiled kernel asks for.
void** __cudaRegisterFatBinary(void*) {
  static void* handle = nullptr;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
// Asked for where the compiler leaves in what no kernel here uses.
char __cudaInitModule(void**) {
  return 0;
}
void __cudaRegisterFunction(
    void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*, int*) {
  const std::lock_guard lock(mutex);
  kernels()[host] = name;
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* host) {
  *kernel = static_cast<cudaKernel_t>(const_cast<void*>(host));
  return cudaSuccess;
}
static thread_local dim3 pushed_grid, pushed_block;
static thread_local void* pushed_stream = nullptr;
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t, cudaStream_t stream) {
  pushed_grid = grid;
  pushed_block = block;
  pushed_stream = stream;
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* bytes, void* stream) {
  *grid = pushed_grid;
  *block = pushed_block;
  *bytes = 0;
  *static_cast<void**>(stream) = pushed_stream;
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(
    cudaKernel_t kernel, dim3, dim3, void** arguments, std::size_t, cudaStream_t) {
  {
    const std::lock_guard lock(mutex);
    const auto found = kernels().find(kernel);
    if (found != kernels().end() && found->second.find("hold") != std::string::npos) {
      gate = *static_cast<const volatile int**>(arguments[0]);
    }
  }
  return call();
}

cudaError_t cudaGetDeviceCount(int* count) {
  *count = static_cast<int>(setting("FAKE_GPU_DEVICES", 1));
  return call();
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "NVIDIA H100 80GB HBM3");
  properties->major = 9;
  return call();
}
cudaError_t cudaDeviceGetPCIBusId(char* bus, int, int) {
  std::strcpy(bus, "0000:01:00.0");
  return call();
}
cudaError_t cudaSetDevice(int device) {
  current = device;
  return call();
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = 13000;
  return call();
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = 13000;
  return call();
}
cudaError_t cudaGetDriverEntryPointByVersion(const char*,
                                             void** function,
                                             unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  *function = nullptr;
  if (result != nullptr) *result = cudaDriverEntryPointSymbolNotFound;
  return call();
}
const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaSuccess                 ? "no error"
         : error == cudaErrorMemoryAllocation ? "out of memory"
                                              : "unspecified launch failure";
}
cudaError_t cudaGetLastError() {
  return failed ? cudaErrorLaunchFailure : cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void*) {
  *attributes = {};
  gpus[current].loaded = true;
  return call();
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  return allocate(memory, bytes);
}
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t) {
  return allocate(memory, bytes);
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  if (const cudaError_t status = after(at_allocation()); status != cudaSuccess) return status;
  *memory = host_pages(round_to(bytes, page));
  return cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  *device = host;
  return call();
}
cudaError_t cudaFree(void* memory) {
  gpus[current].touched = true;
  if (memory == nullptr) return call();
  if (streams_stand()) hang();  // it waits for the device
  host_waits(nullptr);
  give_back(memory);
  return cudaGetLastError();
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream) {
  give_back(memory, stream);
  return cudaGetLastError();
}
// Left until the end: a kernel may still wait at a gate in it.
cudaError_t cudaFreeHost(void*) {
  return cudaGetLastError();
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(mutex);
  *total = total_memory();
  *free = *total - gpus[current].used();
  return call();
}
cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
  static int made = 0;
  *pool = reinterpret_cast<cudaMemPool_t>(&made);
  return call();
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t, cudaMemPoolAttr, void*) {
  return call();
}
cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void* value) {
  const std::lock_guard lock(mutex);
  const Gpu& gpu = gpus[current];
  *static_cast<std::uint64_t*>(value) = gpu.whole_pages + round_to(gpu.shared_bytes, page);
  return call();
}

cudaError_t cudaMemcpyAsync(
    void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  const cudaError_t status = call();
  touches(stream, from, bytes, false, "a copy");
  touches(stream, to, bytes, true, "a copy");
  if (status == cudaSuccess) std::memmove(to, from, std::min(bytes, looked_at));
  return status;
}
// Without a path between two GPUs the driver may wait for the stream before it copies through the
// host.
cudaError_t cudaMemcpyPeerAsync(
    void* to, int, const void* from, int, std::size_t bytes, cudaStream_t stream) {
  const volatile int* closed = gate;
  if (setting("FAKE_GPU_PEERS", 1) == 0 && closed != nullptr && *closed == 0) hang();
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream) {
  const cudaError_t status = call();
  touches(stream, memory, bytes, true, "a fill");
  if (status == cudaSuccess) std::memset(memory, value, bytes);
  return status;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) {
  *can = static_cast<int>(setting("FAKE_GPU_PEERS", 1));
  return call();
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return call();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  *stream = reinterpret_cast<cudaStream_t>(new Time);
  begins(*stream);
  return call();
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  delete reinterpret_cast<Time*>(stream);
  return cudaGetLastError();
}
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  const cudaError_t status = call();
  if (streams_stand()) hang();
  host_waits(stream);
  return status;
}
cudaError_t cudaDeviceSynchronize() {
  return cudaStreamSynchronize(nullptr);
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  const cudaError_t status = call();
  if (status == cudaSuccess && streams_stand()) return cudaErrorNotReady;
  host_waits(stream);
  return status;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return cudaStreamQuery(reinterpret_cast<cudaStream_t>(event));
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(event));
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  waits(stream, event);
  return call();
}
cudaError_t cudaEventCreate(cudaEvent_t* event) {
  *event = reinterpret_cast<cudaEvent_t>(new Time);
  begins(*event);
  return call();
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<Time*>(event);
  return cudaGetLastError();
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  records(event, stream);
  reinterpret_cast<Time*>(event)->at = now();
  return call();
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  const double seconds = reinterpret_cast<Time*>(end)->at - reinterpret_cast<Time*>(begin)->at;
  *milliseconds = static_cast<float>(std::max(1e3 * seconds, 1e-2));
  return call();
}
}
