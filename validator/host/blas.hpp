#pragma once
// The fp32 matrix product of the host.

#include <cstdint>

namespace zeroplan::engine {

/// A row-major operand, transposed or not.
struct Operand {
  const float* data = nullptr;
  std::int64_t leading = 0;  // elements from one row to the next, as stored
  bool transposed = false;
};

/// Row-major c = a b, or c += a b; c is m x n, a is m x k. By one thread, always in the same order.
void multiply(std::int64_t m,
              std::int64_t n,
              std::int64_t k,
              const Operand& a,
              const Operand& b,
              float* c,
              std::int64_t leading,
              bool accumulate);

/// The product of `multiply` without a library, slowly.
void multiply_plainly(std::int64_t m,
                      std::int64_t n,
                      std::int64_t k,
                      const Operand& a,
                      const Operand& b,
                      float* c,
                      std::int64_t leading,
                      bool accumulate);

}  // namespace zeroplan::engine
