// How is a matrix product done fast? Front door: multiply.
#include <cblas.h>
#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <mutex>

#include "gpu_probe/environment_error.hpp"
#include "validator/host/blas.hpp"

namespace zeroplan::engine {
namespace {

// The library, from the first product on: it takes hundreds of MiB of address space when it is
// loaded, spins where it does not get them, and nothing but validate multiplies.
class OpenBlas {
  // Never closed: its functions are used until the end.
  void* library_ = dlopen(ZEROPLAN_OPENBLAS, RTLD_NOW | RTLD_LOCAL);

 public:
  // Where it was built against is not always where it runs: then the plain product does.
  bool here = library_ != nullptr || std::filesystem::exists(ZEROPLAN_OPENBLAS);
  decltype(&cblas_sgemm) product = function<decltype(&cblas_sgemm)>("cblas_sgemm");
  decltype(&openblas_set_num_threads) set_threads =
      function<decltype(&openblas_set_num_threads)>("openblas_set_num_threads");

 private:
  template <class Function>
  Function function(const char* name) const {
    if (!here) return nullptr;
    void* address = library_ == nullptr ? nullptr : dlsym(library_, name);
    if (address == nullptr) {
      throw EnvironmentError(fmt::format("no matrix product: OpenBLAS: {}", dlerror()));
    }
    return reinterpret_cast<Function>(address);
  }
};

const OpenBlas& open_blas() {
  static const OpenBlas library;
  return library;
}

// Ranks are threads already, and need no others. With OpenMP each of them has to say so, but not at
// once: the library moves its buffers then.
struct Alone {
  Alone() {
    static std::mutex one_at_a_time;
    const std::scoped_lock lock(one_at_a_time);
    open_blas().set_threads(1);
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
  if (!open_blas().here) return multiply_plainly(m, n, k, a, b, c, leading, accumulate);
  thread_local const Alone alone;
  const auto integer = [](std::int64_t value) { return static_cast<blasint>(value); };
  const auto way = [](const Operand& o) { return o.transposed ? CblasTrans : CblasNoTrans; };
  open_blas().product(CblasRowMajor, way(a), way(b), integer(m), integer(n), integer(k), 1.0F,
                      a.data, integer(a.leading), b.data, integer(b.leading),
                      accumulate ? 1.0F : 0.0F, c, integer(leading));
}

}  // namespace zeroplan::engine
