// How do tokens become vectors on a GPU? Front door: CudaDevice::embed.
#include "validator/cuda/cuda_device.hpp"
#include "validator/cuda/device_code.cuh"
#include "validator/cuda/kernels.hpp"

namespace zeroplan::engine {
namespace {

using Ids = View<const std::int32_t>;

__device__ bool holds(const VocabularyPart& part, std::int32_t id) {
  return id >= part.first && id < part.first + part.rows;
}

__global__ void embed_kernel(Ids ids, ConstHalf table, VocabularyPart part, Half y) {
  for (std::int64_t i = grid_first(); i < y.rows * y.columns; i += grid_stride()) {
    const std::int32_t id = ids.data[i / y.columns];
    y.data[i] =
        holds(part, id) ? table.data[(id - part.first) * y.columns + i % y.columns] : Bf16{};
  }
}

// A block a token. The block of the first token of an id adds up all of its tokens, in their
// order, and nobody else touches that row.
__global__ void embed_gradient_kernel(Ids ids, ConstHalf dy, VocabularyPart part, Half dtable) {
  const auto token = static_cast<std::int64_t>(blockIdx.x);
  const std::int32_t id = ids.data[token];
  if (!holds(part, id)) return;  // the whole block
  int earlier = 0;
  for (std::int64_t i = threadIdx.x; i < token; i += blockDim.x) {
    if (ids.data[i] == id) earlier = 1;
  }
  if (__syncthreads_or(earlier) != 0) return;
  for (std::int64_t j = threadIdx.x; j < dy.columns; j += blockDim.x) {
    float sum = 0;
    for (std::int64_t i = token; i < ids.rows; ++i) {
      if (ids.data[i] == id) sum += wide(dy.data[i * dy.columns + j]);
    }
    Bf16& to = dtable.data[(id - part.first) * dy.columns + j];
    to = narrowed(wide(to) + sum);
  }
}

__global__ void add_positions_kernel(Half y,
                                     std::int64_t first,
                                     ConstHalf table,
                                     std::int64_t sequence) {
  for (std::int64_t i = grid_first(); i < y.rows * y.columns; i += grid_stride()) {
    const std::int64_t position = (first + i / y.columns) % sequence;
    y.data[i] = narrowed(wide(y.data[i]) + wide(table.data[position * y.columns + i % y.columns]));
  }
}

__global__ void positions_gradient_kernel(ConstHalf dy, Half dtable, std::int64_t sequence) {
  for (std::int64_t i = grid_first(); i < sequence * dy.columns; i += grid_stride()) {
    float sum = 0;
    for (std::int64_t row = i / dy.columns; row < dy.rows; row += sequence) {
      sum += wide(dy.data[row * dy.columns + i % dy.columns]);
    }
    dtable.data[i] = narrowed(wide(dtable.data[i]) + sum);
  }
}

}  // namespace

void CudaDevice::embed(Ids ids, ConstHalf table, const VocabularyPart& part, Half y) {
  embed_kernel<<<blocks_for(y.elements()), block_threads, 0, stream_->get()>>>(ids, table, part, y);
  check_launch("embedding kernel");
}

void CudaDevice::embed_gradient(Ids ids, ConstHalf dy, const VocabularyPart& part, Half dtable) {
  embed_gradient_kernel<<<static_cast<unsigned>(ids.rows), block_threads, 0, stream_->get()>>>(
      ids, dy, part, dtable);
  check_launch("embedding gradient kernel");
}

void CudaDevice::add_positions(Half y, std::int64_t first, ConstHalf table, std::int64_t sequence) {
  add_positions_kernel<<<blocks_for(y.elements()), block_threads, 0, stream_->get()>>>(
      y, first, table, sequence);
  check_launch("positions kernel");
}

void CudaDevice::positions_gradient(ConstHalf dy, Half dtable, std::int64_t sequence) {
  positions_gradient_kernel<<<blocks_for(sequence * dy.columns), block_threads, 0,
                              stream_->get()>>>(dy, dtable, sequence);
  check_launch("positions gradient kernel");
}

Kernels embedding_kernels() {
  return {reinterpret_cast<const void*>(embed_kernel),
          reinterpret_cast<const void*>(embed_gradient_kernel),
          reinterpret_cast<const void*>(add_positions_kernel),
          reinterpret_cast<const void*>(positions_gradient_kernel)};
}

}  // namespace zeroplan::engine
