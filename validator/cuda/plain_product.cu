// What is a matrix product without a library? Front door: multiply_plainly.
#include "validator/cuda/plain_product.hpp"

#include "validator/cuda/device_code.cuh"
#include "validator/cuda/kernels.hpp"

namespace zeroplan::engine {
namespace {

// Element (row, column) of a factor is at row * by_row + column * by_column.
struct Operand {
  const Bf16* data;
  std::int64_t by_row, by_column;
};

Operand operand(const Factor& f) {
  const std::int64_t stride = f.matrix.columns;
  return f.turned ? Operand{f.matrix.data, 1, stride} : Operand{f.matrix.data, stride, 1};
}

__global__ void product_kernel(
    Operand left, Operand right, std::int64_t depth, Half result, bool accumulate) {
  const std::int64_t columns = result.columns;
  for (std::int64_t at = grid_first(); at < result.rows * columns; at += grid_stride()) {
    const Bf16* row = left.data + at / columns * left.by_row;
    const Bf16* column = right.data + at % columns * right.by_column;
    float sum = 0;
    for (std::int64_t l = 0; l < depth; ++l) {
      sum += wide(row[l * left.by_column]) * wide(column[l * right.by_row]);
    }
    result.data[at] = narrowed(accumulate ? wide(result.data[at]) + sum : sum);
  }
}

}  // namespace

void multiply_plainly(const Factor& left,
                      const Factor& right,
                      Half result,
                      bool accumulate,
                      const CudaStream& stream) {
  const std::int64_t depth = left.turned ? left.matrix.rows : left.matrix.columns;
  product_kernel<<<blocks_for(result.elements()), block_threads, 0, stream.get()>>>(
      operand(left), operand(right), depth, result, accumulate);
  check_launch("product kernel");
}

Kernels product_kernels() {
  return {reinterpret_cast<const void*>(product_kernel)};
}

}  // namespace zeroplan::engine
