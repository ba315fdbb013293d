// How is a matrix product done fast? Front door: multiply.
#include <cblas.h>

#include <mutex>

#include "validator/host/blas.hpp"

namespace zeroplan::engine {
namespace {

// Ranks are threads already, and need no others. With OpenMP each of them has to say so, but not at
// once: the library moves its buffers then.
struct Alone {
  Alone() {
    static std::mutex one_at_a_time;
    const std::scoped_lock lock(one_at_a_time);
    openblas_set_num_threads(1);
  }
};

}  // namespace

void multiply(std::int64_t m,
              std::int64_t n,
              std::int64_t k,
              const Operand& a,
              const Operand& b,
              float* c,
              std::int64_t leading,
              bool accumulate) {
  thread_local const Alone alone;
  const auto integer = [](std::int64_t value) { return static_cast<blasint>(value); };
  const auto way = [](const Operand& o) { return o.transposed ? CblasTrans : CblasNoTrans; };
  cblas_sgemm(CblasRowMajor, way(a), way(b), integer(m), integer(n), integer(k), 1.0F, a.data,
              integer(a.leading), b.data, integer(b.leading), accumulate ? 1.0F : 0.0F, c,
              integer(leading));
}

}  // namespace zeroplan::engine
