// Do the clocks run as fast as they may? Front door: measure_clocks.
#include <dlfcn.h>

#include <array>
#include <utility>

#include "gpu_probe/cuda/matrix_product.hpp"
#include "gpu_probe/cuda/parts.hpp"

namespace zeroplan {
namespace {

// The driver's management library, where there is one: its header comes with few toolkits, so these
// few functions are asked for by name (NVML API reference, nvmlDeviceQueries).
class Management {
 public:
  Management() : library_(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    if (library_ == nullptr) return;
    const auto begin = function<int()>("nvmlInit_v2");
    ready_ = begin != nullptr && begin() == success;
  }
  Management(const Management&) = delete;
  Management& operator=(const Management&) = delete;
  ~Management() {
    if (const auto end = function<int()>("nvmlShutdown"); ready_ && end != nullptr) end();
    if (library_ != nullptr) dlclose(library_);
  }

  std::optional<ClockFacts> clocks_of(const char* bus) const {
    if (!ready_) return std::nullopt;
    void* device = nullptr;
    const auto find = function<int(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
    if (find == nullptr || find(bus, &device) != success) return std::nullopt;
    constexpr int multiprocessors = 1;  // NVML_CLOCK_SM
    const auto read = [&](const char* name) {
      unsigned megahertz = 0;
      const auto ask = function<int(void*, int, unsigned*)>(name);
      return ask != nullptr && ask(device, multiprocessors, &megahertz) == success ? megahertz : 0;
    };
    ClockFacts facts{.megahertz = read("nvmlDeviceGetClockInfo"),
                     .highest_megahertz = read("nvmlDeviceGetMaxClockInfo")};
    unsigned long long reasons = 0;
    const auto ask =
        function<int(void*, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons");
    if (ask != nullptr && ask(device, &reasons) == success) {
      for (const auto& [bit, name] : known) {
        if ((reasons & bit) != 0) facts.held_back_by.emplace_back(name);
      }
    }
    return facts;
  }

 private:
  static constexpr int success = 0;
  // nvmlClocksThrottleReason...; an idle GPU and clocks that were set are none.
  static constexpr std::array<std::pair<unsigned long long, const char*>, 6> known{
      {{0x4, "the power cap"},
       {0x8, "the hardware"},
       {0x10, "another GPU in step with it"},
       {0x20, "heat, by the driver"},
       {0x40, "heat, by the hardware"},
       {0x80, "the power supply"}}};

  template <class Function>
  Function* function(const char* name) const {
    return library_ == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(library_, name));
  }

  void* library_;
  bool ready_ = false;
};

}  // namespace

std::optional<ClockFacts> measure_clocks(const Gemm& gemm) {
  check(cudaSetDevice(0), "cudaSetDevice");
  std::array<char, 32> bus{};
  check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), 0),
        "cudaDeviceGetPCIBusId");
  const Management management;
  const CudaStream stream;
  const ProductLibrary library;
  MatrixProduct product(library, gemm, stream);
  constexpr int a_while = 500;  // launches, of which the queue holds as many
  for (int i = 0; i < a_while; ++i) product.run(stream);
  std::optional<ClockFacts> facts = management.clocks_of(bus.data());
  stream.synchronize();
  return facts;
}

}  // namespace zeroplan
