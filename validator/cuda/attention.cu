// What is causal attention on a GPU, without a matrix of scores? Front door: CudaDevice::attention.
// A warp a query, or a warp a key; its lanes share a head's width. Slow and plain: it is there to
// be right.
#include <cmath>
#include <string>

#include "gpu_probe/environment_error.hpp"
#include "validator/cuda/cuda_device.hpp"
#include "validator/cuda/device_code.cuh"
#include "validator/cuda/kernels.hpp"
#include "validator/host/host_device.hpp"

namespace zeroplan::engine {
namespace {

constexpr int lanes = 32;
constexpr int shares = 8;  // of a head's width that a lane holds, at most
constexpr std::int64_t widest = lanes * shares;
constexpr unsigned all_lanes = 0xffffffffU;

// A head's row, spread over a warp: lane l holds elements l, l + 32, ...
struct Spread {
  float at[shares];
};

__device__ int lane() {
  return static_cast<int>(threadIdx.x) % lanes;
}

__device__ Spread zeros() {
  Spread s;
#pragma unroll
  for (int i = 0; i < shares; ++i) s.at[i] = 0;
  return s;
}

__device__ Spread load(const Bf16* from, std::int64_t width) {
  Spread s;
#pragma unroll
  for (int i = 0; i < shares; ++i) {
    const int j = lane() + i * lanes;
    s.at[i] = j < width ? wide(from[j]) : 0.0F;
  }
  return s;
}

__device__ void store(const Spread& s, Bf16* to, std::int64_t width) {
#pragma unroll
  for (int i = 0; i < shares; ++i) {
    const int j = lane() + i * lanes;
    if (j < width) to[j] = narrowed(s.at[i]);
  }
}

// The product of two rows, the same bits in every lane: each step adds the same two numbers.
__device__ float dot(const Spread& a, const Spread& b) {
  float sum = 0;
#pragma unroll
  for (int i = 0; i < shares; ++i) sum += a.at[i] * b.at[i];
  for (int other = lanes / 2; other > 0; other /= 2) {
    sum += __shfl_xor_sync(all_lanes, sum, other);
  }
  return sum;
}

// to = to * before + from * factor
__device__ void mix(Spread& to, float before, const Spread& from, float factor) {
#pragma unroll
  for (int i = 0; i < shares; ++i) to.at[i] = to.at[i] * before + from.at[i] * factor;
}

// Which row and head this warp works on; false where there is none left.
struct Task {
  std::int64_t row, head;
  bool real;
};

__device__ Task task(std::int64_t rows, std::int64_t heads) {
  const std::int64_t warp = grid_first() / lanes;
  return {warp / heads, warp % heads, warp < rows * heads};
}

// Where a head begins in a row of queries, keys and values.
__device__ std::int64_t key_at(const AttentionShape& s, std::int64_t kv_head) {
  return s.heads * s.head_dim + kv_head * s.head_dim;
}
__device__ std::int64_t value_at(const AttentionShape& s, std::int64_t kv_head) {
  return key_at(s, kv_head) + s.kv_heads * s.head_dim;
}

__global__ void attention_kernel(
    ConstHalf qkv, AttentionShape s, float scale, Half y, Wide statistics) {
  const Task t = task(qkv.rows, s.heads);
  if (!t.real) return;
  const std::int64_t kv_head = t.head / (s.heads / s.kv_heads);
  const Spread query = load(qkv.data + t.row * qkv.columns + t.head * s.head_dim, s.head_dim);
  Spread output = zeros();
  float most = -INFINITY;
  float sum = 0;
  for (std::int64_t row = t.row - t.row % s.sequence; row <= t.row; ++row) {
    const Bf16* seen = qkv.data + row * qkv.columns;
    const float score = dot(query, load(seen + key_at(s, kv_head), s.head_dim)) * scale;
    const float higher = fmaxf(most, score);
    const float shrink = expf(most - higher);
    const float weight = expf(score - higher);
    sum = sum * shrink + weight;
    mix(output, shrink, load(seen + value_at(s, kv_head), s.head_dim), weight);
    most = higher;
  }
  mix(output, 1.0F / sum, output, 0.0F);
  store(output, y.data + t.row * y.columns + t.head * s.head_dim, s.head_dim);
  if (lane() == 0) statistics.data[t.row * s.heads + t.head] = most + logf(sum);
}

// D = sum(dy y) of each head of each token.
__global__ void products_kernel(ConstHalf dy, ConstHalf y, AttentionShape s, float* products) {
  const Task t = task(y.rows, s.heads);
  if (!t.real) return;
  const std::int64_t at = t.row * y.columns + t.head * s.head_dim;
  const float product = dot(load(dy.data + at, s.head_dim), load(y.data + at, s.head_dim));
  if (lane() == 0) products[t.row * s.heads + t.head] = product;
}

// What both gradients read. With p the probabilities: ds = p (dy v^T - D), dq = ds k,
// dk = ds^T q, dv = p^T dy.
struct Given {
  ConstHalf dy, qkv;
  ConstWide statistics;
  const float* products;
  AttentionShape shape;
  float scale;
};

struct Weights {
  float probability, score_gradient;
};

// The weights of the query of `head` in `row`, and one key.
__device__ Weights weights(const Given& g,
                           std::int64_t row,
                           std::int64_t head,
                           const Spread& query,
                           const Spread& gradient,
                           const Spread& key,
                           const Spread& value) {
  const std::int64_t at = row * g.shape.heads + head;
  const float p = expf(dot(query, key) * g.scale - g.statistics.data[at]);
  return {p, p * (dot(gradient, value) - g.products[at]) * g.scale};
}

__global__ void query_gradient_kernel(Given g, Half dqkv) {
  const AttentionShape& s = g.shape;
  const Task t = task(g.qkv.rows, s.heads);
  if (!t.real) return;
  const std::int64_t kv_head = t.head / (s.heads / s.kv_heads);
  const std::int64_t own = t.head * s.head_dim;
  const Spread query = load(g.qkv.data + t.row * g.qkv.columns + own, s.head_dim);
  const Spread gradient = load(g.dy.data + t.row * g.dy.columns + own, s.head_dim);
  Spread dquery = zeros();
  for (std::int64_t row = t.row - t.row % s.sequence; row <= t.row; ++row) {
    const Bf16* seen = g.qkv.data + row * g.qkv.columns;
    const Spread key = load(seen + key_at(s, kv_head), s.head_dim);
    const Spread value = load(seen + value_at(s, kv_head), s.head_dim);
    const Weights w = weights(g, t.row, t.head, query, gradient, key, value);
    mix(dquery, 1.0F, key, w.score_gradient);
  }
  store(dquery, dqkv.data + t.row * dqkv.columns + own, s.head_dim);
}

// Query heads that share a key, and their queries in order, add up before they are rounded.
__global__ void key_gradient_kernel(Given g, Half dqkv) {
  const AttentionShape& s = g.shape;
  const Task t = task(g.qkv.rows, s.kv_heads);
  if (!t.real) return;
  const std::int64_t sharing = s.heads / s.kv_heads;
  const Bf16* own = g.qkv.data + t.row * g.qkv.columns;
  const Spread key = load(own + key_at(s, t.head), s.head_dim);
  const Spread value = load(own + value_at(s, t.head), s.head_dim);
  Spread dkey = zeros();
  Spread dvalue = zeros();
  const std::int64_t end = t.row - t.row % s.sequence + s.sequence;
  for (std::int64_t head = t.head * sharing; head < (t.head + 1) * sharing; ++head) {
    for (std::int64_t row = t.row; row < end; ++row) {
      const std::int64_t at = head * s.head_dim;
      const Spread query = load(g.qkv.data + row * g.qkv.columns + at, s.head_dim);
      const Spread gradient = load(g.dy.data + row * g.dy.columns + at, s.head_dim);
      const Weights w = weights(g, row, head, query, gradient, key, value);
      mix(dkey, 1.0F, query, w.score_gradient);
      mix(dvalue, 1.0F, gradient, w.probability);
    }
  }
  Bf16* to = dqkv.data + t.row * dqkv.columns;
  store(dkey, to + key_at(s, t.head), s.head_dim);
  store(dvalue, to + value_at(s, t.head), s.head_dim);
}

// Rotary positions (Su et al. 2021), the two halves of a head as pairs, base 10,000. A thread a
// pair of a row, through all heads.
__global__ void rotate_kernel(Half qkv, AttentionShape s, bool back) {
  constexpr double base = 10000.0;
  const std::int64_t half = s.head_dim / 2;
  for (std::int64_t i = grid_first(); i < qkv.rows * half; i += grid_stride()) {
    const std::int64_t row = i / half;
    const std::int64_t pair = i % half;
    const double frequency = pow(base, -static_cast<double>(pair) / static_cast<double>(half));
    const double angle = static_cast<double>(row % s.sequence) * frequency;
    const auto cosine = static_cast<float>(cos(angle));
    const auto sine = static_cast<float>(back ? -sin(angle) : sin(angle));
    for (std::int64_t head = 0; head < s.heads + s.kv_heads; ++head) {
      Bf16* at = qkv.data + row * qkv.columns + head * s.head_dim + pair;
      const float x = wide(at[0]);
      const float y = wide(at[half]);
      at[0] = narrowed(x * cosine - y * sine);
      at[half] = narrowed(x * sine + y * cosine);
    }
  }
}

// Blocks for a warp each; every warp has at most one task.
unsigned warp_blocks(std::int64_t warps) {
  constexpr std::int64_t warps_of_block = block_threads / lanes;
  return static_cast<unsigned>((warps + warps_of_block - 1) / warps_of_block);
}

float scale_of(const AttentionShape& s) {
  if (s.head_dim > widest) {
    throw EnvironmentError("heads of " + std::to_string(s.head_dim) +
                           ": the GPU engine's attention ends at " + std::to_string(widest));
  }
  return 1.0F / std::sqrt(static_cast<float>(s.head_dim));
}

}  // namespace

void CudaDevice::attention(ConstHalf qkv, const AttentionShape& s, Half y, Wide statistics) {
  attention_kernel<<<warp_blocks(qkv.rows * s.heads), block_threads, 0, stream_->get()>>>(
      qkv, s, scale_of(s), y, statistics);
  check_launch("attention kernel");
}

void CudaDevice::attention_gradient(ConstHalf dy,
                                    ConstHalf qkv,
                                    ConstHalf y,
                                    ConstWide statistics,
                                    const AttentionShape& s,
                                    Half dqkv) {
  float* products = Scratch(workspace_).take(qkv.rows * s.heads);
  const Given given{dy, qkv, statistics, products, s, scale_of(s)};
  const unsigned query_blocks = warp_blocks(qkv.rows * s.heads);
  products_kernel<<<query_blocks, block_threads, 0, stream_->get()>>>(dy, y, s, products);
  check_launch("attention products kernel");
  query_gradient_kernel<<<query_blocks, block_threads, 0, stream_->get()>>>(given, dqkv);
  check_launch("query gradient kernel");
  key_gradient_kernel<<<warp_blocks(qkv.rows * s.kv_heads), block_threads, 0, stream_->get()>>>(
      given, dqkv);
  check_launch("key gradient kernel");
}

void CudaDevice::rotate(Half qkv, const AttentionShape& s, bool back) {
  rotate_kernel<<<blocks_for(qkv.rows * s.head_dim / 2), block_threads, 0, stream_->get()>>>(qkv, s,
                                                                                             back);
  check_launch("rotation kernel");
}

Kernels attention_kernels() {
  return {reinterpret_cast<const void*>(attention_kernel),
          reinterpret_cast<const void*>(products_kernel),
          reinterpret_cast<const void*>(query_gradient_kernel),
          reinterpret_cast<const void*>(key_gradient_kernel),
          reinterpret_cast<const void*>(rotate_kernel)};
}

}  // namespace zeroplan::engine
