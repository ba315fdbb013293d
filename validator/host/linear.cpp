// What is a linear on the host? Front door: HostDevice::linear.
#include <algorithm>

#include "validator/host/blas.hpp"
#include "validator/host/host_device.hpp"

namespace zeroplan::engine {
namespace {

// A bf16 operand; op(a) is rows x columns of the product.
struct Factor {
  ConstHalf matrix;
  bool transposed = false;
};

// Widens a block of op(factor), stored as op has it.
void widen_block(const Factor& f,
                 std::int64_t row,
                 std::int64_t column,
                 std::int64_t rows,
                 std::int64_t columns,
                 float* to) {
  const std::int64_t stride = f.matrix.columns;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::int64_t at =
          f.transposed ? (column + j) * stride + row + i : (row + i) * stride + column + j;
      to[i * columns + j] = widen(f.matrix.data[at]);
    }
  }
}

// c = a b or c += a b in square blocks, so that the fp32 copies fit the workspace at any size.
void blocked(const Factor& a, const Factor& b, std::int64_t k, Half c, bool accumulate, Wide work) {
  constexpr std::int64_t block = 1024;
  Scratch scratch(work);
  float* left = scratch.take(block * block);
  float* right = scratch.take(block * block);
  float* sum = scratch.take(block * block);
  for (std::int64_t i = 0; i < c.rows; i += block) {
    const std::int64_t m = std::min(block, c.rows - i);
    for (std::int64_t j = 0; j < c.columns; j += block) {
      const std::int64_t n = std::min(block, c.columns - j);
      for (std::int64_t l = 0; l < k; l += block) {
        const std::int64_t depth = std::min(block, k - l);
        widen_block(a, i, l, m, depth, left);
        widen_block(b, l, j, depth, n, right);
        multiply(m, n, depth, {left, depth}, {right, n}, sum, n, l > 0);
      }
      for (std::int64_t r = 0; r < m; ++r) {
        Bf16* row = c.data + (i + r) * c.columns + j;
        for (std::int64_t s = 0; s < n; ++s) {
          const float before = accumulate ? widen(row[s]) : 0.0F;
          row[s] = narrow(before + sum[r * n + s]);
        }
      }
    }
  }
}

}  // namespace

void HostDevice::do_linear(ConstHalf x, ConstHalf w, Half y) {
  blocked({x}, {w, true}, x.columns, y, false, workspace_);
}

void HostDevice::do_linear_input_gradient(ConstHalf dy, ConstHalf w, Half dx) {
  blocked({dy}, {w}, dy.columns, dx, false, workspace_);
}

void HostDevice::do_linear_weight_gradient(ConstHalf dy, ConstHalf x, Half dw) {
  blocked({dy, true}, {x}, dy.rows, dw, true, workspace_);
}

void HostDevice::add_bias(Half y, ConstHalf bias) {
  for (std::int64_t i = 0; i < y.rows; ++i) {
    for (std::int64_t j = 0; j < y.columns; ++j) {
      Bf16& value = y.data[i * y.columns + j];
      value = narrow(widen(value) + widen(bias.data[j]));
    }
  }
}

void HostDevice::bias_gradient(ConstHalf dy, Half dbias) {
  for (std::int64_t j = 0; j < dy.columns; ++j) {
    float sum = 0;
    for (std::int64_t i = 0; i < dy.rows; ++i) sum += widen(dy.data[i * dy.columns + j]);
    dbias.data[j] = narrow(widen(dbias.data[j]) + sum);
  }
}

void HostDevice::add(Half to, ConstHalf from) {
  for (std::int64_t i = 0; i < to.elements(); ++i) {
    to.data[i] = narrow(widen(to.data[i]) + widen(from.data[i]));
  }
}

void HostDevice::copy(Half to, ConstHalf from) {
  std::copy(from.data, from.data + from.elements(), to.data);
}

}  // namespace zeroplan::engine
