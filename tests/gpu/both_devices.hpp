#pragma once
// The same random numbers on the host and on the GPU, and what an operation makes of them there.

#include <cmath>
#include <deque>
#include <random>
#include <vector>

#include "tests/catch.hpp"
#include "validator/cuda/cuda_device.hpp"
#include "validator/host/host_device.hpp"

namespace zeroplan::tests {

/// A matrix in both memories.
template <class Value>
struct Twin {
  engine::View<Value> host, gpu;
};

class BothDevices {
 public:
  BothDevices() : meter_(0, engine::Allocation::exact), gpu_(meter_) {
    const Twin<float> workspace = numbers(8 * 1024 * 1024, 1);
    host_.use_workspace(workspace.host);
    gpu_.use_workspace(workspace.gpu);
  }
  BothDevices(const BothDevices&) = delete;
  BothDevices& operator=(const BothDevices&) = delete;
  ~BothDevices() {
    for (void* memory : taken_) gpu_.release(memory);
  }

  /// Normal numbers, rounded to bf16. `offset` elements after an aligned address.
  Twin<engine::Bf16> halves(std::int64_t rows, std::int64_t columns, std::int64_t offset = 0) {
    std::normal_distribution<float> normal;
    std::vector<engine::Bf16>& values =
        halves_.emplace_back(static_cast<std::size_t>(rows * columns + offset));
    for (engine::Bf16& value : values) value = engine::narrow(normal(random_));
    const Twin<engine::Bf16> all = twin(values, rows * columns + offset, 1);
    return {{all.host.data + offset, rows, columns}, {all.gpu.data + offset, rows, columns}};
  }
  Twin<float> numbers(std::int64_t rows, std::int64_t columns) {
    std::uniform_real_distribution<float> uniform(0.1F, 1.0F);
    std::vector<float>& values = numbers_.emplace_back(static_cast<std::size_t>(rows * columns));
    for (float& value : values) value = uniform(random_);
    return twin(values, rows, columns);
  }
  Twin<std::int32_t> ids(std::int64_t rows, std::int32_t below) {
    std::uniform_int_distribution<std::int32_t> uniform(0, below - 1);
    std::vector<std::int32_t>& values = ids_.emplace_back(static_cast<std::size_t>(rows));
    for (std::int32_t& value : values) value = uniform(random_);
    return twin(values, rows, 1);
  }

  /// Calls `work(device, of)` for each device; `of(twin)` is the matrix in its memory.
  template <class Work>
  void run(Work&& work) {
    work(static_cast<engine::Device&>(host_), [](const auto& twin) { return twin.host; });
    work(static_cast<engine::Device&>(gpu_), [](const auto& twin) { return twin.gpu; });
  }

  /// Within `tolerance` of each number and of their root mean square.
  template <class Value>
  void require_close(const Twin<Value>& twin, double tolerance) {
    std::vector<Value> found(static_cast<std::size_t>(twin.gpu.elements()));
    gpu_.download(found.data(), twin.gpu.data,
                  twin.gpu.elements() * static_cast<std::int64_t>(sizeof(Value)));
    double squares = 0;
    for (std::size_t i = 0; i < found.size(); ++i) squares += std::pow(real(twin.host.data[i]), 2);
    const double usual = std::sqrt(squares / static_cast<double>(found.size()));
    for (std::size_t i = 0; i < found.size(); ++i) {
      const double expected = real(twin.host.data[i]);
      CAPTURE(i, expected, real(found[i]));
      const double allowed = tolerance * (std::fabs(expected) + usual);
      if (!(std::fabs(real(found[i]) - expected) <= allowed)) FAIL("too far from the host's");
    }
    SUCCEED();
  }

 private:
  static double real(engine::Bf16 value) { return static_cast<double>(engine::widen(value)); }
  static double real(float value) { return static_cast<double>(value); }

  template <class Value>
  Twin<Value> twin(std::vector<Value>& values, std::int64_t rows, std::int64_t columns) {
    const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(Value));
    void* memory = gpu_.allocate(bytes);
    taken_.push_back(memory);
    gpu_.upload(memory, values.data(), bytes);
    return {{values.data(), rows, columns}, {static_cast<Value*>(memory), rows, columns}};
  }

  engine::Meter meter_;
  engine::CudaDevice gpu_;
  engine::HostDevice host_;
  std::mt19937 random_{7};
  std::deque<std::vector<engine::Bf16>> halves_;  // whose elements stay where they are
  std::deque<std::vector<float>> numbers_;
  std::deque<std::vector<std::int32_t>> ids_;
  std::vector<void*> taken_;
};

}  // namespace zeroplan::tests
