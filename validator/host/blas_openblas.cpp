// How is a matrix product done fast? Front door: multiply.
#include <cblas.h>

#include <mutex>

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
  // Ranks are threads already.
  static std::once_flag once;
  std::call_once(once, [] { openblas_set_num_threads(1); });
  const auto integer = [](std::int64_t value) { return static_cast<blasint>(value); };
  const auto way = [](const Operand& o) { return o.transposed ? CblasTrans : CblasNoTrans; };
  cblas_sgemm(CblasRowMajor, way(a), way(b), integer(m), integer(n), integer(k), 1.0F, a.data,
              integer(a.leading), b.data, integer(b.leading), accumulate ? 1.0F : 0.0F, c,
              integer(leading));
}

}  // namespace zeroplan::engine
