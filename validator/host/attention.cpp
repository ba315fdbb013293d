// What is causal attention on the host, without a matrix of scores? Front door:
// HostDevice::attention.
#include <algorithm>
#include <cmath>

#include "validator/host/blas.hpp"
#include "validator/host/host_device.hpp"

namespace zeroplan::engine {
namespace {

constexpr std::int64_t row_block = 64;  // queries at a time

// One head of one sample among the rows of a tensor.
struct Head {
  std::int64_t first_row, offset, width;
};

void widen_head(ConstHalf from, const Head& head, std::int64_t rows, float* to) {
  for (std::int64_t i = 0; i < rows; ++i) {
    const Bf16* row = from.data + (head.first_row + i) * from.columns + head.offset;
    for (std::int64_t j = 0; j < head.width; ++j) to[i * head.width + j] = widen(row[j]);
  }
}

void narrow_head(const float* from, const Head& head, std::int64_t rows, Half to) {
  for (std::int64_t i = 0; i < rows; ++i) {
    Bf16* row = to.data + (head.first_row + i) * to.columns + head.offset;
    for (std::int64_t j = 0; j < head.width; ++j) row[j] = narrow(from[i * head.width + j]);
  }
}

// Where a head's parts lie in a row of queries, keys and values.
struct Places {
  Head query, key, value, output;
};

Places places(const AttentionShape& s, std::int64_t sample, std::int64_t head) {
  const std::int64_t first = sample * s.sequence;
  const std::int64_t shared = head / (s.heads / s.kv_heads) * s.head_dim;
  return {{first, head * s.head_dim, s.head_dim},
          {first, s.query() + shared, s.head_dim},
          {first, s.query() + s.key_value() + shared, s.head_dim},
          {first, head * s.head_dim, s.head_dim}};
}

Head rows_from(Head head, std::int64_t first) {
  head.first_row += first;
  return head;
}

float scale_of(const AttentionShape& s) {
  return 1.0F / std::sqrt(static_cast<float>(s.head_dim));
}

}  // namespace

// What the gradient takes below, which is more than the pass itself.
std::int64_t HostDevice::attention_scratch(const AttentionShape& s) const {
  return 4 * s.sequence * s.head_dim + 4 * row_block * s.head_dim + 2 * row_block * s.sequence;
}

void HostDevice::attention(ConstHalf qkv, const AttentionShape& s, Half y, Wide statistics) {
  const std::int64_t d = s.head_dim;
  Scratch scratch(workspace_);
  float* key = scratch.take(s.sequence * d);
  float* value = scratch.take(s.sequence * d);
  float* query = scratch.take(row_block * d);
  float* output = scratch.take(row_block * d);
  float* scores = scratch.take(row_block * s.sequence);
  const float scale = scale_of(s);
  for (std::int64_t sample = 0; sample < s.samples; ++sample) {
    for (std::int64_t head = 0; head < s.heads; ++head) {
      const Places at = places(s, sample, head);
      widen_head(qkv, at.key, s.sequence, key);
      widen_head(qkv, at.value, s.sequence, value);
      for (std::int64_t first = 0; first < s.sequence; first += row_block) {
        const std::int64_t rows = std::min(row_block, s.sequence - first);
        const std::int64_t seen = first + rows;  // keys that any of these queries sees
        widen_head(qkv, rows_from(at.query, first), rows, query);
        multiply(rows, seen, d, {query, d}, {key, d, true}, scores, seen, false);
        for (std::int64_t i = 0; i < rows; ++i) {
          float* row = scores + i * seen;
          const std::int64_t own = first + i + 1;
          float most = row[0] * scale;
          for (std::int64_t j = 0; j < own; ++j) most = std::max(most, row[j] *= scale);
          float sum = 0;
          for (std::int64_t j = 0; j < own; ++j) sum += row[j] = std::exp(row[j] - most);
          for (std::int64_t j = 0; j < seen; ++j) row[j] = j < own ? row[j] / sum : 0.0F;
          statistics.data[(at.query.first_row + first + i) * s.heads + head] = most + std::log(sum);
        }
        multiply(rows, d, seen, {scores, seen}, {value, d}, output, d, false);
        narrow_head(output, rows_from(at.output, first), rows, y);
      }
    }
  }
}

// With p the probabilities and D = sum(dy y): ds = p (dy v^T - D), dq = ds k, dk = ds^T q,
// dv = p^T dy. Query heads that share keys and values add up before they are rounded.
void HostDevice::attention_gradient(ConstHalf dy,
                                    ConstHalf qkv,
                                    ConstHalf y,
                                    ConstWide statistics,
                                    const AttentionShape& s,
                                    Half dqkv) {
  const std::int64_t d = s.head_dim;
  Scratch scratch(workspace_);
  float* key = scratch.take(s.sequence * d);
  float* value = scratch.take(s.sequence * d);
  float* dkey = scratch.take(s.sequence * d);
  float* dvalue = scratch.take(s.sequence * d);
  float* query = scratch.take(row_block * d);
  float* dquery = scratch.take(row_block * d);
  float* output = scratch.take(row_block * d);
  float* doutput = scratch.take(row_block * d);
  float* scores = scratch.take(row_block * s.sequence);
  float* dscores = scratch.take(row_block * s.sequence);
  const float scale = scale_of(s);
  const std::int64_t sharing = s.heads / s.kv_heads;
  for (std::int64_t sample = 0; sample < s.samples; ++sample) {
    for (std::int64_t head = 0; head < s.heads; ++head) {
      const Places at = places(s, sample, head);
      if (head % sharing == 0) {
        widen_head(qkv, at.key, s.sequence, key);
        widen_head(qkv, at.value, s.sequence, value);
        std::fill(dkey, dkey + s.sequence * d, 0.0F);
        std::fill(dvalue, dvalue + s.sequence * d, 0.0F);
      }
      for (std::int64_t first = 0; first < s.sequence; first += row_block) {
        const std::int64_t rows = std::min(row_block, s.sequence - first);
        const std::int64_t seen = first + rows;
        widen_head(qkv, rows_from(at.query, first), rows, query);
        widen_head(y, rows_from(at.output, first), rows, output);
        widen_head(dy, rows_from(at.output, first), rows, doutput);
        multiply(rows, seen, d, {query, d}, {key, d, true}, scores, seen, false);
        multiply(rows, seen, d, {doutput, d}, {value, d, true}, dscores, seen, false);
        for (std::int64_t i = 0; i < rows; ++i) {
          const float log_sum = statistics.data[(at.query.first_row + first + i) * s.heads + head];
          float mean = 0;
          for (std::int64_t j = 0; j < d; ++j) mean += output[i * d + j] * doutput[i * d + j];
          for (std::int64_t j = 0; j < seen; ++j) {
            float& p = scores[i * seen + j];
            float& ds = dscores[i * seen + j];
            p = j <= first + i ? std::exp(p * scale - log_sum) : 0.0F;
            ds = p * (ds - mean) * scale;
          }
        }
        multiply(rows, d, seen, {dscores, seen}, {key, d}, dquery, d, false);
        multiply(seen, d, rows, {dscores, seen, true}, {query, d}, dkey, d, true);
        multiply(seen, d, rows, {scores, seen, true}, {doutput, d}, dvalue, d, true);
        narrow_head(dquery, rows_from(at.query, first), rows, dqkv);
      }
      if (head % sharing == sharing - 1) {
        narrow_head(dkey, at.key, s.sequence, dqkv);
        narrow_head(dvalue, at.value, s.sequence, dqkv);
      }
    }
  }
}

// Rotary positions (Su et al. 2021), the two halves of a head as pairs, base 10,000.
void HostDevice::rotate(Half qkv, const AttentionShape& s, bool back) {
  constexpr double base = 10000.0;
  const std::int64_t half = s.head_dim / 2;
  for (std::int64_t row = 0; row < qkv.rows; ++row) {
    const auto position = static_cast<double>(row % s.sequence);
    for (std::int64_t i = 0; i < half; ++i) {
      const double frequency = std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
      const double angle = back ? -position * frequency : position * frequency;
      const auto cosine = static_cast<float>(std::cos(angle));
      const auto sine = static_cast<float>(std::sin(angle));
      for (std::int64_t head = 0; head < s.heads + s.kv_heads; ++head) {
        Bf16* at = qkv.data + row * qkv.columns + head * s.head_dim + i;
        const float x = widen(at[0]);
        const float y = widen(at[half]);
        at[0] = narrow(x * cosine - y * sine);
        at[half] = narrow(x * sine + y * cosine);
      }
    }
  }
}

}  // namespace zeroplan::engine
