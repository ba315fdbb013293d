// Who multiplies where this was built without a library? Front door: multiply.
#include "validator/host/blas.hpp"

namespace zeroplan::engine {

void multiply(std::int64_t m,
              std::int64_t n,
              std::int64_t k,
              const Operand& a,
              const Operand& b,
              float* c,
              std::int64_t leading,
              bool accumulate) {
  multiply_plainly(m, n, k, a, b, c, leading, accumulate);
}

}  // namespace zeroplan::engine
