#pragma once
// Buffers of several ranks on one GPU, combined in the order of ranks.

#include <vector>

#include "validator/communicator/communicator.hpp"
#include "validator/cuda/cuda_device.hpp"

namespace zeroplan::engine {

constexpr std::size_t most_buffers = 64;

/// Elements [first, last) of all buffers combined in fp32, rounded once, and written to each of
/// them.
void combine_bf16(const std::vector<void*>& buffers,
                  std::int64_t first,
                  std::int64_t last,
                  const CudaStream& stream);
void combine_fp32(const std::vector<void*>& buffers,
                  std::int64_t first,
                  std::int64_t last,
                  Reduction reduction,
                  const CudaStream& stream);
/// The sum alone, written to one of them.
void sum_into_bf16(Bf16* to,
                   const std::vector<void*>& buffers,
                   std::int64_t first,
                   std::int64_t last,
                   const CudaStream& stream);

}  // namespace zeroplan::engine
