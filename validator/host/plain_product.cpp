// How is a matrix product done without a library? Front door: multiply_plainly.
#include "validator/host/blas.hpp"

namespace zeroplan::engine {

void multiply_plainly(std::int64_t m,
                      std::int64_t n,
                      std::int64_t k,
                      const Operand& a,
                      const Operand& b,
                      float* c,
                      std::int64_t leading,
                      bool accumulate) {
  const auto at = [](const Operand& o, std::int64_t row, std::int64_t column) {
    return o.data[o.transposed ? column * o.leading + row : row * o.leading + column];
  };
  for (std::int64_t i = 0; i < m; ++i) {
    float* row = c + i * leading;
    if (!accumulate) {
      for (std::int64_t j = 0; j < n; ++j) row[j] = 0;
    }
    for (std::int64_t l = 0; l < k; ++l) {
      const float left = at(a, i, l);
      for (std::int64_t j = 0; j < n; ++j) row[j] += left * at(b, l, j);
    }
  }
}

}  // namespace zeroplan::engine
