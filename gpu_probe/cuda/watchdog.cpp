// Does the GPU still answer? Front door: Watchdog.
#include "gpu_probe/cuda/watchdog.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace zeroplan {
namespace {

std::atomic<std::uint64_t> calls{0};

}  // namespace

void Watchdog::returned() {
  calls.fetch_add(1, std::memory_order_relaxed);
}

Watchdog::Watchdog(std::chrono::milliseconds patience, std::string remedy)
    : thread_([this, patience, text = std::move(remedy)] { watch(patience, text); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    end_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void Watchdog::watch(std::chrono::milliseconds patience, const std::string& remedy) {
  std::uint64_t seen = calls;
  std::unique_lock lock(mutex_);
  auto since = std::chrono::steady_clock::now();
  while (!ended_.wait_for(lock, patience / 20, [&] { return end_; })) {
    const auto now = std::chrono::steady_clock::now();
    if (calls != seen) {
      seen = calls;
      since = now;
    } else if (now - since > patience) {
      fmt::print(stderr,
                 "zeroplan: error: no call of CUDA, cuBLASLt or NCCL has returned for {} s{}\n",
                 std::chrono::duration<double>(patience).count(), remedy);
      std::fflush(nullptr);
      constexpr int environment = 3;
      std::_Exit(environment);
    }
  }
}

}  // namespace zeroplan
