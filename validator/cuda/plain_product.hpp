#pragma once
// A matrix product by a kernel of our own, for what cuBLASLt has none.

#include "validator/cuda/products.hpp"

namespace zeroplan::engine {

/// result = left right, or result += left right: a thread an element, fp32 sums in the order of the
/// inner dimension, rounded once. For shapes and alignments that no library kernel takes; slow.
void multiply_plainly(const Factor& left,
                      const Factor& right,
                      Half result,
                      bool accumulate,
                      const CudaStream& stream);

}  // namespace zeroplan::engine
