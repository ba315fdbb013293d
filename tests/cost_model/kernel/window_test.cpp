// Attention that sees a sliding window of keys.
#include <cmath>
#include <utility>

#include "cost_model/answer/step_time.hpp"
#include "cost_model/kernel/attention.hpp"
#include "cost_model/kernel/core_attention.hpp"
#include "presets/catalog.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

TEST_CASE("a window leaves its part of the pairs, and costs as much") {
  CHECK(share_in_window(0, 4096) == 1);
  CHECK(share_in_window(4096, 4096) == 1);
  CHECK(share_in_window(8192, 4096) == 1);
  CHECK(share_in_window(2048, 4096) == 0.75);  // all pairs but those of a triangle half as wide
  AttentionShape shape{.batch = 2,
                       .queries = 8192,
                       .keys = 8192,
                       .heads = 64,
                       .kv_heads = 8,
                       .qk_width = 128,
                       .v_width = 128};
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    shape.window = 0;
    const auto seconds = [&] {
      return flash_seconds(shape, direction, find_gpu("GB200"), Precision::bf16);
    };
    const double whole = seconds();
    shape.window = 8191;
    CHECK(seconds() == Approx(whole));  // edges are not counted twice
    shape.window = 1024;
    CHECK(seconds() < 0.7 * whole);
    CHECK(seconds() > share_in_window(1024, 8192) * whole);
  }
}

// NVIDIA/cudnn-frontend benchmark/sdpa_benchmark_training/results/gpt_oss @3929da2: cuDNN 9.22, two
// samples, 128 heads of 64, a window of 128.
TEST_CASE("attention in a window is near what cuDNN takes on Blackwell") {
  struct Row {
    Direction direction;
    std::int64_t sequence;
    double gb200, gb300;  // milliseconds
  };
  constexpr Row rows[] = {{Direction::forward, 8192, 0.414, 0.397},
                          {Direction::backward, 8192, 0.911, 0.862},
                          {Direction::forward, 4096, 0.210, 0.202},
                          {Direction::backward, 4096, 0.465, 0.442}};
  for (const Row& row : rows) {
    const AttentionShape shape{.batch = 2,
                               .queries = row.sequence,
                               .keys = row.sequence,
                               .heads = 128,
                               .kv_heads = 128,
                               .qk_width = 64,
                               .v_width = 64,
                               .window = 128};
    for (const auto& [gpu, measured] : {std::pair("GB200", row.gb200), {"GB300", row.gb300}}) {
      CAPTURE(gpu, row.sequence, row.direction == Direction::forward);
      const double seconds = flash_seconds(shape, row.direction, find_gpu(gpu), Precision::bf16,
                                           FlashKernel::newest, Pace::burst);
      CHECK(std::abs(std::log(1e3 * seconds / measured)) < std::log(1.45));
    }
  }
}

// Half of gpt-oss's layers see 128 keys. The flash-attn package and cuDNN skip the rest, plain
// PyTorch's fused attention takes a mask and does not.
TEST_CASE("windowed layers of a model are timed where the runtime's kernel knows windows") {
  Problem p = problem(Runtime::megatron, "gpt-oss-20b", {}, "H100-80GB");
  p.training.sequence_length = 4096;
  REQUIRE(windowed_attention(p).has_value());
  CHECK(windowed_attention(p)->window == 128);
  CHECK(windowed_attention(p)->keys == core_attention(p).keys);
  p.training.sequence_length = 128;
  CHECK_FALSE(windowed_attention(p).has_value());
  p.training.sequence_length = 4096;
  Problem plain = p;
  plain.model.attention.windowed_layers = 0;
  CHECK_FALSE(windowed_attention(plain).has_value());
  CHECK(step_seconds(p, Evaluator(p)) < step_seconds(plain, Evaluator(plain)));
  const Problem pytorch = problem(Runtime::fsdp2, "gpt-oss-20b", {}, "H100-80GB");
  CHECK_FALSE(windowed_attention(pytorch).has_value());
}

// transformers 5.24.0 masking_utils.py: SDPA is told of a window by a mask, from as many tokens on.
TEST_CASE("Transformers' windowed layers compute all scores where a mask is made") {
  Problem p = problem(Runtime::fsdp2, "gemma3-1b", {}, "H100-80GB");
  p.runtime.fsdp2.layers = LayerCode::huggingface;
  const std::int64_t window = p.model.attention.sliding_window;
  p.training.sequence_length = window - 1;
  CHECK_FALSE(masks_windows(p));
  p.training.sequence_length = window;
  REQUIRE(masks_windows(p));
  REQUIRE(windowed_attention(p).has_value());
  CHECK_FALSE(windowed_attention(p)->causal);
  CHECK(windowed_attention(p)->window == 0);
  Problem whole = p;
  whole.model.attention.windowed_layers = 0;
  CHECK_FALSE(masks_windows(whole));
  p.training.sequence_length = whole.training.sequence_length = 8192;
  CHECK(step_seconds(p, Evaluator(p)) > step_seconds(whole, Evaluator(whole)));

  SECTION("but not by torchtitan's code, nor eagerly, nor of Ulysses' heads") {
    p.layout.cp = 2;
    CHECK_FALSE(masks_windows(p));
    p.layout.cp = 1;
    p.training.attention = AttentionKernel::unfused;
    CHECK_FALSE(masks_windows(p));
    p.training.attention = AttentionKernel::flash;
    p.runtime.fsdp2.layers = LayerCode::torchtitan;
    CHECK_FALSE(masks_windows(p));
  }
  SECTION("under DeepSpeed and as replicas too") {
    for (const Runtime runtime : {Runtime::deepspeed, Runtime::ddp}) {
      CHECK(masks_windows(problem(runtime, "gemma3-1b", {}, "H100-80GB")));
    }
  }
  SECTION("the package flash-attn needs none, and leaves out what lies outside") {
    for (const Runtime runtime : {Runtime::fsdp2, Runtime::deepspeed, Runtime::ddp}) {
      Problem by_package = problem(runtime, "gemma3-1b", {}, "H100-80GB");
      by_package.runtime.fsdp2.layers = LayerCode::huggingface;
      by_package.runtime.attn_implementation = AttnImplementation::flash_attention_2;
      by_package.training.sequence_length = 8192;
      CHECK_FALSE(masks_windows(by_package));
      REQUIRE(windowed_attention(by_package).has_value());
      CHECK(windowed_attention(by_package)->window == window);
    }
    whole.runtime.attn_implementation = AttnImplementation::flash_attention_2;
    Problem by_package = p;
    by_package.runtime.attn_implementation = AttnImplementation::flash_attention_2;
    CHECK(step_seconds(by_package, Evaluator(by_package)) <
          step_seconds(whole, Evaluator(whole)));
  }
}

TEST_CASE("layers that see all keys stand at even distances, last") {
  const auto windowed = [](std::int64_t layers, std::int64_t of_them) {
    ModelSpec model;
    model.layers = layers;
    model.attention.windowed_layers = of_them;
    std::string list;
    for (std::int64_t i = 0; i < layers; ++i) list += is_windowed(model, i) ? 'w' : '-';
    return list;
  };
  CHECK(windowed(4, 0) == "----");
  CHECK(windowed(4, 4) == "wwww");
  CHECK(windowed(6, 3) == "w-w-w-");           // Gemma 2, gpt-oss
  CHECK(windowed(13, 11) == "wwwww-wwwww-w");  // Gemma 3: every sixth
  CHECK(windowed(5, 2) == "---ww");
}
