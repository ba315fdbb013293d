// How fast attention is in 8 bits, beside NVIDIA/cudnn-frontend benchmark/
// sdpa_benchmark_training/results @3929da2 (causal, not deterministic).

#include <array>
#include <cmath>
#include <string_view>

#include "cost_model/kernel/attention.hpp"
#include "presets/catalog.hpp"
#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

enum class Heads { llama, deepseek };

// Milliseconds of the kernel in 16 bits and in 8: of one sample on H200, of two on the others.
struct Measured {
  const char* gpu = "";
  Heads heads = Heads::llama;
  std::int64_t tokens = 0;
  bool block_scales = false;
  Direction direction = Direction::forward;
  double wide_milliseconds = 0, narrow_milliseconds = 0;
};

constexpr auto forward = Direction::forward, backward = Direction::backward;
constexpr std::array kernels{
    Measured{"H200", Heads::llama, 4096, false, forward, 0.465, 0.322},
    Measured{"H200", Heads::llama, 8192, false, forward, 1.708, 1.141},
    Measured{"H200", Heads::llama, 4096, false, backward, 1.450, 1.459},
    Measured{"H200", Heads::llama, 8192, false, backward, 5.083, 6.392},
    Measured{"GB200", Heads::llama, 8192, false, forward, 1.397, 1.074},
    Measured{"GB300", Heads::llama, 8192, false, forward, 1.185, 0.759},
    Measured{"GB200", Heads::llama, 8192, false, backward, 4.127, 3.781},
    Measured{"GB300", Heads::llama, 8192, false, backward, 3.832, 3.087},
    Measured{"GB200", Heads::llama, 8192, true, forward, 1.397, 1.156},
    Measured{"GB300", Heads::llama, 8192, true, forward, 1.185, 0.856},
    Measured{"GB200", Heads::llama, 8192, true, backward, 4.127, 4.272},
    Measured{"GB300", Heads::llama, 8192, true, backward, 3.832, 3.917},
    Measured{"GB200", Heads::deepseek, 4096, false, forward, 0.977, 0.656},
    Measured{"GB300", Heads::deepseek, 4096, false, forward, 0.864, 0.493},
    Measured{"GB200", Heads::deepseek, 4096, false, backward, 3.383, 2.112},
    Measured{"GB300", Heads::deepseek, 4096, false, backward, 3.127, 1.803},
    Measured{"GB200", Heads::deepseek, 4096, true, forward, 0.977, 0.714},
    Measured{"GB300", Heads::deepseek, 4096, true, forward, 0.864, 0.546},
    Measured{"GB200", Heads::deepseek, 4096, true, backward, 3.383, 2.620},
    Measured{"GB300", Heads::deepseek, 4096, true, backward, 3.127, 2.348},
};

AttentionShape shape_of(const Measured& k) {
  const bool llama = k.heads == Heads::llama;
  return {.batch = std::string_view(k.gpu) == "H200" ? 1 : 2,
          .queries = k.tokens,
          .keys = k.tokens,
          .heads = llama ? 64 : 128,
          .kv_heads = llama ? 8 : 128,
          .qk_width = llama ? 128 : 192,
          .v_width = 128};
}

}  // namespace

// cudnn-frontend, as above: 16 bits, 4,096 tokens, TFLOP/s backward.
TEST_CASE("recent kernels of wide heads lose less of the rate of others backward") {
  struct Pair {
    const char* gpu;
    double llama, deepseek;
  };
  for (const Pair& measured : {Pair{"GB200", 1148, 1057}, Pair{"GB300", 1248, 1143}}) {
    const GpuSpec gpu = find_gpu(measured.gpu);
    const auto rate = [&](Heads heads, bool recent) {
      AttentionShape shape = shape_of({.heads = heads, .tokens = 4096});
      shape.recent = recent;
      const double start = flash_start(gpu, FlashKernel::newest);
      return attention_flops(shape) /
             (flash_seconds(shape, backward, gpu, Precision::bf16) - start);
    };
    const auto wide = [&](bool recent) {
      return rate(Heads::deepseek, recent) / rate(Heads::llama, recent);
    };
    CHECK(wide(true) == Approx(measured.deepseek / measured.llama).epsilon(0.02));
    CHECK(wide(false) < 0.8);
  }
}

TEST_CASE("attention in 8 bits is as fast as cuDNN's kernels") {
  for (const Measured& k : kernels) {
    CAPTURE(k.gpu, k.tokens, k.block_scales, k.direction == forward, k.heads == Heads::llama);
    const GpuSpec gpu = find_gpu(k.gpu);
    const AttentionShape wide = shape_of(k);
    AttentionShape narrow = wide;
    narrow.eight_bit = true;
    narrow.block_scales = k.block_scales;
    const auto seconds = [&](const AttentionShape& shape) {
      return flash_seconds(shape, backward, gpu, Precision::bf16) -
             flash_start(gpu, FlashKernel::newest);
    };
    if (k.direction == forward) {
      const double alone =
          flash_seconds(narrow, forward, gpu, Precision::bf16, FlashKernel::newest, Pace::burst) -
          flash_start(gpu, FlashKernel::newest);
      CHECK(std::abs(1e3 * alone / k.narrow_milliseconds - 1) < 0.15);
    } else {
      const double measured = k.wide_milliseconds / k.narrow_milliseconds;
      CHECK(std::abs(seconds(wide) / seconds(narrow) / measured - 1) < 0.2);
    }
  }
}
