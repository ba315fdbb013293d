#pragma once
// How long core attention takes: queries times keys, softmax, times values.

#include <cstdint>

#include "cost_model/kernel/gemm.hpp"
#include "cost_model/question/cluster.hpp"
#include "cost_model/question/training.hpp"

namespace zeroplan {

/// Core attention of one micro-batch on one rank.
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t queries = 0;  // positions of one sequence
  std::int64_t keys = 0;
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t qk_width = 0;  // of a head
  std::int64_t v_width = 0;
  bool causal = true;
  bool dropout = false;
  bool fused_softmax = false;  // unfused attention: scale, mask and softmax are one kernel
  bool eight_bit = false;      // flash attention: its products are of 8 bits
  bool block_scales = false;   // products of 8 bits: each 32 elements have a scale
  bool recent = false;         // flash attention: by cuDNN 9.18 or later
  std::int64_t window = 0;     // flash attention: keys that a query sees at most; 0: all
  friend bool operator==(const AttentionShape&, const AttentionShape&) = default;
};

/// flash1, flash2: FlashAttention of that generation, on any GPU.
enum class FlashKernel { newest, flash2, flash1 };

enum class Direction { forward, backward };

/// FLOPs of the forward pass: 2 (qk_width + v_width) for each query, key and head, half of that
/// where causal, which is what flash kernels skip; a window leaves less. Backward is 2.5 times as
/// much: five products instead of two, the first of them repeated (Dao 2023, FlashAttention-2,
/// section 4).
double attention_flops(const AttentionShape& shape);

/// The part of the pairs of a query and an earlier key that a window leaves: 1 without one.
double share_in_window(std::int64_t window, std::int64_t keys);

/// Seconds of a flash attention kernel, by the law beside kernels::AttentionSpeed. fp8 recipes keep
/// attention in 16 bits unless the shape says otherwise.
double flash_seconds(const AttentionShape& shape,
                     Direction direction,
                     const GpuSpec& gpu,
                     Precision precision,
                     FlashKernel kernel = FlashKernel::newest,
                     Pace pace = Pace::sustained);

/// What of the seconds of a flash attention kernel does not grow with the work, and is hidden by a
/// kernel on another stream.
double flash_start(const GpuSpec& gpu, FlashKernel kernel);

/// Seconds of attention that stores its scores: batched GEMMs over the whole matrix, causal or not,
/// and kernels for mask, softmax and dropout; the fused kernel reads what the mask leaves.
double unfused_seconds(const AttentionShape& shape,
                       Direction direction,
                       const GpuSpec& gpu,
                       Precision precision);

}  // namespace zeroplan
