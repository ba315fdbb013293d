// Properties of predicted kernel times, and kernels worked by hand.

#include <array>

#include "cost_model/kernel/attention.hpp"
#include "cost_model/kernel/gemm.hpp"
#include "cost_model/kernel/memory_bound.hpp"
#include "cost_model/kernel/time_constants.hpp"
#include "presets/catalog.hpp"
#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

constexpr std::array gpus{"V100-32GB", "A100-80GB", "H100-80GB", "H200", "B200", "GB200", "MI300X"};
// Multiples of what lets rows begin aligned.
constexpr std::array<std::int64_t, 6> sizes{16, 128, 208, 1024, 4096, 28672};

double training_seconds(const Gemm& gemm, const GpuSpec& gpu) {
  return gemm_seconds(gemm, gpu, Precision::fp16, Pace::sustained);
}

}  // namespace

TEST_CASE("a large GEMM runs at the sustained efficiency, a small one waits for its start") {
  const GpuSpec a100 = find_gpu("A100-80GB");
  // 2 x 8192^3 x (1 + 200/8192) / (0.88 x 312e12) + 5 us.
  REQUIRE(gemm_seconds({.m = 8192, .n = 8192, .k = 8192}, a100, Precision::bf16, Pace::sustained) ==
          Approx(4.2328e-3).epsilon(1e-3));
  REQUIRE(gemm_seconds({.m = 16, .n = 16, .k = 16}, a100, Precision::bf16, Pace::burst) ==
          Approx(14e-6).epsilon(1e-2));
  // One row reads the whole weight: 2 x 8192^2 bytes at 0.85 x 2039e9, and 14 us.
  REQUIRE(gemm_seconds({.m = 1, .n = 8192, .k = 8192}, a100, Precision::bf16, Pace::burst) ==
          Approx(91.5e-6).epsilon(1e-2));
}

TEST_CASE("what a board's power leaves counts in training, in 16 bits by a clock of their own") {
  const Gemm gemm{.m = 8192, .n = 8192, .k = 8192};
  for (const Precision precision : {Precision::bf16, Precision::fp16, Precision::fp8}) {
    GpuSpec gpu = find_gpu("GB200");
    REQUIRE(gpu.sustained_clock_16_bits > gpu.sustained_clock);
    const bool narrow = precision == Precision::fp8;
    double& own = narrow ? gpu.sustained_clock : gpu.sustained_clock_16_bits;
    double& other = narrow ? gpu.sustained_clock_16_bits : gpu.sustained_clock;
    const double alone = gemm_seconds(gemm, gpu, precision, Pace::burst);
    const double before = gemm_seconds(gemm, gpu, precision, Pace::sustained);
    other *= 0.5;
    REQUIRE(gemm_seconds(gemm, gpu, precision, Pace::sustained) == before);
    own *= 0.5;
    REQUIRE(gemm_seconds(gemm, gpu, precision, Pace::sustained) ==
            Approx(2 * before).epsilon(0.02));
    REQUIRE(gemm_seconds(gemm, gpu, precision, Pace::burst) == alone);
  }
}

TEST_CASE("a GEMM never takes less when a side grows") {
  for (const char* name : gpus) {
    const GpuSpec gpu = find_gpu(name);
    for (const Product product : {Product::forward, Product::weight_gradient}) {
      for (const std::int64_t groups : {1, 8}) {
        for (const std::int64_t a : sizes) {
          for (const std::int64_t b : sizes) {
            double m = 0, n = 0, k = 0;
            for (const std::int64_t side : sizes) {
              const double wide_m = training_seconds({{}, product, side, a, b, groups}, gpu);
              const double wide_n = training_seconds({{}, product, a, side, b, groups}, gpu);
              const double wide_k = training_seconds({{}, product, a, b, side, groups}, gpu);
              CAPTURE(name, a, b, side, groups);
              REQUIRE((wide_m >= m && wide_n >= n && wide_k >= k));
              m = wide_m, n = wide_n, k = wide_k;
            }
          }
        }
      }
    }
  }
}

TEST_CASE("a GEMM whose rows do not begin aligned takes longer") {
  const GpuSpec a100 = find_gpu("A100-80GB");
  const auto head = [&](Product product, std::int64_t words) {
    return product == Product::weight_gradient
               ? training_seconds({{}, product, words, 1024, 8192}, a100)
           : product == Product::forward ? training_seconds({{}, product, 8192, words, 1024}, a100)
                                         : training_seconds({{}, product, 8192, 1024, words}, a100);
  };
  for (const Product product :
       {Product::forward, Product::input_gradient, Product::weight_gradient}) {
    REQUIRE(head(product, 50'257) > 2.5 * head(product, 50'304));
  }
}

TEST_CASE("a kernel never takes longer when the GPU's rates rise") {
  for (const char* name : gpus) {
    const GpuSpec gpu = find_gpu(name);
    GpuSpec faster = gpu;
    faster.fp16_flops *= 1.5;
    GpuSpec wider = gpu;
    wider.memory_bandwidth *= 1.5;
    const AttentionShape attention{1, 4096, 4096, 32, 8, 128, 128};
    for (const GpuSpec& other : {faster, wider}) {
      CAPTURE(name);
      for (const std::int64_t m : sizes) {
        const Gemm gemm{.m = m, .n = 4096, .k = 1024};
        REQUIRE(training_seconds(gemm, other) <= training_seconds(gemm, gpu));
      }
      for (const Direction way : {Direction::forward, Direction::backward}) {
        REQUIRE(flash_seconds(attention, way, other, Precision::fp16) <=
                flash_seconds(attention, way, gpu, Precision::fp16));
        REQUIRE(unfused_seconds(attention, way, other, Precision::fp16) <=
                unfused_seconds(attention, way, gpu, Precision::fp16));
      }
      REQUIRE(memory_bound_seconds(64_MiB, Access::streaming, other) <=
              memory_bound_seconds(64_MiB, Access::streaming, gpu));
    }
  }
}

TEST_CASE("each GPU generation multiplies large matrices faster than the one before") {
  const Gemm gemm{.m = 8192, .n = 8192, .k = 8192};
  double before = 1e9;
  for (const char* name : {"V100-32GB", "A100-80GB", "H100-80GB", "B200"}) {
    const double seconds = training_seconds(gemm, find_gpu(name));
    CAPTURE(name, seconds, before);
    REQUIRE(seconds < before);
    before = seconds;
  }
}

TEST_CASE("attention never takes less when anything grows") {
  for (const char* name : gpus) {
    const GpuSpec gpu = find_gpu(name);
    const auto seconds = [&](const AttentionShape& shape, bool flash) {
      double sum = 0;
      for (const Direction way : {Direction::forward, Direction::backward}) {
        sum += flash ? flash_seconds(shape, way, gpu, Precision::fp16)
                     : unfused_seconds(shape, way, gpu, Precision::fp16);
      }
      return sum;
    };
    const AttentionShape base{1, 1024, 1024, 8, 8, 64, 64};
    for (const bool flash : {true, false}) {
      std::vector<AttentionShape> larger(7, base);
      larger[0].batch = 2;
      larger[1].queries = 2048;
      larger[2].keys = 2048;
      larger[3].heads = 16;
      larger[4].qk_width = 128;
      larger[5].v_width = 128;
      larger[6].causal = false;
      for (std::size_t i = 0; i < larger.size(); ++i) {
        CAPTURE(name, flash, i);
        if (i == 6 && flash) continue;  // measured: a short causal sequence wastes more than half
        REQUIRE(seconds(larger[i], flash) >= seconds(base, flash));
      }
    }
  }
}

TEST_CASE("a GPU without a unit for the format never finishes") {
  REQUIRE(peak_flops(find_gpu("A100-80GB"), Precision::fp8) == 0);
  REQUIRE(std::isinf(gemm_seconds({.m = 64, .n = 64, .k = 64}, find_gpu("A100-80GB"),
                                  Precision::fp8, Pace::burst)));
}

TEST_CASE("GPUs without rows have the constants of the generation that is said") {
  REQUIRE(generation_of(find_gpu("V100-32GB")).name == "Ampere");
  REQUIRE(generation_of(find_gpu("L40S")).name == "Ampere");
  REQUIRE(generation_of(find_gpu("H200")).name == "Hopper");
  REQUIRE(generation_of(find_gpu("RTX-5090")).name == "Blackwell");
  REQUIRE(generation_of(find_gpu("MI300X")).name == "CDNA");
}

TEST_CASE("moving bytes takes a start and its share of the memory's rate") {
  // 2039e6 bytes at 0.87 x 2039e9 a second, and 3 us.
  REQUIRE(memory_bound_seconds(Bytes{2'039'000'000}, Access::streaming, find_gpu("A100-80GB")) ==
          Approx(1e-3 / 0.87 + 3e-6));
  REQUIRE(memory_bound_seconds({}, Access::streaming, find_gpu("A100-80GB")) == 0);
}
