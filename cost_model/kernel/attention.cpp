// How long does core attention take? Front doors: flash_seconds, unfused_seconds.
#include "cost_model/kernel/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "cost_model/kernel/gemm.hpp"
#include "cost_model/kernel/memory_bound.hpp"
#include "cost_model/kernel/time_constants.hpp"

namespace zeroplan {
namespace {

constexpr double wide_head = 128;  // from here on kernels keep the matrix units busy

Precision sixteen_bits(Precision precision) {
  return is_quantized(precision) ? Precision::bf16 : precision;
}

const kernels::AttentionSpeed& attention_speed(const GpuSpec& gpu, FlashKernel kernel) {
  const kernels::Generation& generation = generation_of(gpu);
  return kernel == FlashKernel::newest ? generation.attention : generation.flash2;
}

std::int64_t element_bytes(Precision precision) {
  return precision == Precision::fp32 ? 4 : 2;
}

// Queries and outputs, keys and values: read and written once.
double flash_bytes(const AttentionShape& s, Precision precision) {
  const std::int64_t rows = s.heads * s.queries + s.kv_heads * s.keys;
  return static_cast<double>(element_bytes(precision) * s.batch * rows * (s.qk_width + s.v_width));
}

// The rate of heads of this width, as a part of the rate with heads of 128.
double width_rate(const AttentionShape& s,
                  Direction direction,
                  const kernels::AttentionSpeed& speed,
                  const kernels::Shared& shared) {
  const auto least = static_cast<double>(std::min(s.qk_width, s.v_width));
  const auto most = static_cast<double>(std::max(s.qk_width, s.v_width));
  if (least < wide_head) return std::pow(least / wide_head, speed.narrow);
  if (direction == Direction::forward || most <= wide_head) return 1;
  const bool recent = s.recent && speed.recent_wide_backward > 0;
  return std::pow(wide_head / most, recent ? speed.recent_wide_backward : shared.wide_backward);
}

// The rate as a multiple of that in 16 bits: 1 unless the products are of 8 bits.
double eight_bit_rate(const AttentionShape& s,
                      Direction direction,
                      const kernels::AttentionSpeed& speed,
                      const GpuSpec& gpu) {
  if (!s.eight_bit) return 1;
  const kernels::EightBitAttention& rates = s.block_scales ? speed.block_scales : speed.one_scale;
  const bool wide = static_cast<double>(s.qk_width) > wide_head && s.qk_width > s.v_width;
  if (direction == Direction::forward) {
    const kernels::Shared& shared = time_constants(gpu).kernels;
    const bool fast = gpu.compute_capability == shared.fast_exponentials;
    return (wide ? rates.wide_forward : rates.forward) *
           (fast ? shared.fast_exponentials_forward : 1);
  }
  return wide ? rates.wide_backward : rates.backward;
}

// Keys of the matrix of scores, as parts of all, that the kernel works on: those that a causal mask
// and a window leave, and tiles on the edges. cuDNN's backward pass in 8 bits leaves out nothing
// for a window (NVIDIA/cudnn-frontend benchmark/sdpa_benchmark_training/results/gpt_oss @3929da2).
double worked_on(const AttentionShape& s,
                 Direction direction,
                 double s0,
                 const kernels::Shared& shared) {
  const auto keys = static_cast<double>(s.keys);
  const double whole = 1 + s0 / keys;
  const bool skips = s.window > 0 && !(s.eight_bit && direction == Direction::backward);
  if (!skips) return whole;
  return std::min(whole, share_in_window(s.window, s.keys) + shared.window_edges * s0 / keys);
}

double flops_without_window(const AttentionShape& s) {
  AttentionShape whole = s;
  whole.window = 0;
  return attention_flops(whole);
}

std::int64_t score_elements(const AttentionShape& s) {
  return s.batch * s.heads * s.queries * s.keys;
}

// One product per query row of all heads and samples: (b a s_q x width) times (width x s_k).
double product_seconds(const AttentionShape& s,
                       std::int64_t width,
                       bool scores_out,
                       const GpuSpec& gpu,
                       Precision precision) {
  const std::int64_t rows = s.batch * s.heads * s.queries;
  const Gemm gemm = scores_out ? Gemm{.m = rows, .n = s.keys, .k = width}
                               : Gemm{.m = rows, .n = width, .k = s.keys};
  const kernels::Shared& shared = time_constants(gpu).kernels;
  const double padded = static_cast<double>(round_up(width, shared.head_tile));
  const double waste = std::pow(padded / static_cast<double>(width), shared.head_tile_waste);
  return waste * gemm_seconds(gemm, gpu, precision, Pace::sustained);
}

// Softmax reads scores and writes probabilities; backward reads these and their gradient.
Bytes softmax_bytes(const AttentionShape& s, bool forward, std::int64_t element) {
  const std::int64_t read = (forward ? 1 : 2) * element * score_elements(s);
  const std::int64_t written = element * score_elements(s);
  if (s.fused_softmax) return Bytes{(s.causal ? read / 2 : read) + written};
  const std::int64_t masked = 2 * written;
  return Bytes{read + written + masked};
}

}  // namespace

double attention_flops(const AttentionShape& shape) {
  const double full = 2 * static_cast<double>(score_elements(shape)) *
                      static_cast<double>(shape.qk_width + shape.v_width);
  return share_in_window(shape.window, shape.keys) * (shape.causal ? full / 2 : full);
}

double share_in_window(std::int64_t window, std::int64_t keys) {
  if (window == 0 || window >= keys) return 1;
  const double part = static_cast<double>(window) / static_cast<double>(keys);
  return part * (2 - part);
}

double flash_start(const GpuSpec& gpu, FlashKernel kernel) {
  return attention_speed(gpu, kernel).start;
}

double flash_seconds(const AttentionShape& shape,
                     Direction direction,
                     const GpuSpec& gpu,
                     Precision precision,
                     FlashKernel kernel,
                     Pace pace) {
  const double peak = peak_flops(gpu, sixteen_bits(precision));
  if (peak <= 0) return std::numeric_limits<double>::infinity();
  const kernels::Shared& shared = time_constants(gpu).kernels;
  const kernels::AttentionSpeed& speed = attention_speed(gpu, kernel);
  const bool forward = direction == Direction::forward;

  const double rate =
      (forward ? speed.forward : speed.backward) * peak * gpu.product_speed * gpu.sustained_clock *
      (forward && pace == Pace::sustained ? speed.forward_sustained : 1) *
      width_rate(shape, direction, speed, shared) * eight_bit_rate(shape, direction, speed, gpu);
  const double s0 = !forward       ? shared.backward_s0
                    : shape.causal ? speed.forward_s0
                                   : shared.whole_matrix_s0 * speed.forward_s0;
  const double slowness = kernel == FlashKernel::flash1 ? shared.flash1_slowness : 1;
  const double work = flops_without_window(shape) * worked_on(shape, direction, s0, shared) *
                      (forward ? 1 : 2.5) * slowness;
  // Backward reads what forward did and the output's gradient, and writes three gradients.
  const double bytes = flash_bytes(shape, precision) * (forward ? 1 : 2);
  return speed.start + std::max(work / rate, bytes / (shared.gemm_bandwidth * gpu.memory_speed *
                                                      gpu.memory_bandwidth));
}

double unfused_seconds(const AttentionShape& shape,
                       Direction direction,
                       const GpuSpec& gpu,
                       Precision precision) {
  const Precision format = sixteen_bits(precision);
  const bool forward = direction == Direction::forward;
  const double scores = product_seconds(shape, shape.qk_width, true, gpu, format);
  const double values = product_seconds(shape, shape.v_width, false, gpu, format);
  // Gradients: of the probabilities, over the width of a head as the scores; of queries, keys and
  // values, over the positions as the output.
  const double products = forward ? scores + values : scores + 3 * values;

  const std::int64_t element = element_bytes(format);
  const std::int64_t elements = score_elements(shape);
  const Bytes softmax = softmax_bytes(shape, forward, element);
  // Dropout reads, writes, and writes or reads its one-byte mask.
  const Bytes dropout{shape.dropout ? (2 * element + 1) * elements : 0};
  return products + memory_bound_seconds(softmax, Access::streaming, gpu) +
         memory_bound_seconds(dropout, Access::streaming, gpu);
}

}  // namespace zeroplan
