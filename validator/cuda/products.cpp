// How does a GPU multiply matrices? Front door: Products.
#include "validator/cuda/products.hpp"

#include <fmt/format.h>

#include "gpu_probe/environment_error.hpp"

namespace zeroplan::engine {
namespace {

// Parameters lie one after another in their buffer, so a matrix may begin anywhere: the largest
// power of two, up to the 256 that cuBLASLt assumes, that divides the address.
unsigned alignment_of(const void* data) {
  unsigned alignment = 256;
  while (reinterpret_cast<std::uintptr_t>(data) % alignment != 0) alignment /= 2;
  return alignment;
}

std::size_t bytes_of(Wide workspace) {
  return static_cast<std::size_t>(workspace.elements()) * sizeof(float);
}

}  // namespace

struct Products::Plan {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  bool used = false;

  Plan() = default;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    for (cublasLtMatrixLayout_t layout : {a, b, c}) {
      if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
    }
    if (operation != nullptr) cublasLtMatmulDescDestroy(operation);
  }

  void turn(cublasLtMatmulDescAttributes_t which, bool turned) const {
    const cublasOperation_t how = turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(cublasLtMatmulDescSetAttribute(operation, which, &how, sizeof how),
          "cublasLtMatmulDescSetAttribute");
  }
};

namespace {

// cuBLASLt counts columns first: to it, a row-major matrix is its transposed one.
void lay_out(cublasLtMatrixLayout_t& layout, ConstHalf m) {
  check(cublasLtMatrixLayoutCreate(&layout, CUDA_R_16BF, static_cast<std::uint64_t>(m.columns),
                                   static_cast<std::uint64_t>(m.rows), m.columns),
        "cublasLtMatrixLayoutCreate");
}

class Preference {
 public:
  Preference() {
    check(cublasLtMatmulPreferenceCreate(&preference_), "cublasLtMatmulPreferenceCreate");
  }
  Preference(const Preference&) = delete;
  Preference& operator=(const Preference&) = delete;
  ~Preference() { cublasLtMatmulPreferenceDestroy(preference_); }
  template <class Value>
  void set(cublasLtMatmulPreferenceAttributes_t which, Value value) {
    check(cublasLtMatmulPreferenceSetAttribute(preference_, which, &value, sizeof value),
          "cublasLtMatmulPreferenceSetAttribute");
  }
  cublasLtMatmulPreference_t get() const { return preference_; }

 private:
  cublasLtMatmulPreference_t preference_ = nullptr;
};

}  // namespace

Products::Products(Meter& meter) : meter_(meter) {
  meter_.book(&Closing::products, [&] { check(cublasLtCreate(&handle_), "cublasLtCreate"); });
}

Products::~Products() {
  plans_.clear();
  cublasLtDestroy(handle_);
}

Products::Plan& Products::planned(
    const Key& key, const Factor& left, const Factor& right, Half result, Wide workspace) {
  const auto found = plans_.find(key);
  if (found != plans_.end()) return *found->second;
  auto plan = std::make_unique<Plan>();
  check(cublasLtMatmulDescCreate(&plan->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  // Transposed, the operands change places.
  plan->turn(CUBLASLT_MATMUL_DESC_TRANSA, right.turned);
  plan->turn(CUBLASLT_MATMUL_DESC_TRANSB, left.turned);
  lay_out(plan->a, right.matrix);
  lay_out(plan->b, left.matrix);
  lay_out(plan->c, result);
  Preference preference;
  preference.set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, bytes_of(workspace));
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                 std::uint32_t{alignment_of(right.matrix.data)});
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                 std::uint32_t{alignment_of(left.matrix.data)});
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                 std::uint32_t{alignment_of(result.data)});
  preference.set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
                 std::uint32_t{alignment_of(result.data)});
  cublasLtMatmulHeuristicResult_t best{};
  int count = 0;
  check(cublasLtMatmulAlgoGetHeuristic(handle_, plan->operation, plan->a, plan->b, plan->c, plan->c,
                                       preference.get(), 1, &best, &count),
        "cublasLtMatmulAlgoGetHeuristic");
  if (count == 0) {
    throw EnvironmentError(
        fmt::format("cuBLASLt has no kernel for a {} x {} result", result.rows, result.columns));
  }
  plan->algorithm = best.algo;
  return *(plans_[key] = std::move(plan));
}

void Products::run(const Factor& left,
                   const Factor& right,
                   Half result,
                   bool accumulate,
                   Wide workspace,
                   const CudaStream& stream) {
  const std::int64_t depth = left.turned ? left.matrix.rows : left.matrix.columns;
  const Key key{result.rows,
                result.columns,
                depth,
                left.turned,
                right.turned,
                accumulate,
                alignment_of(left.matrix.data),
                alignment_of(right.matrix.data),
                alignment_of(result.data)};
  Plan& plan = planned(key, left, right, result, workspace);
  const auto multiply = [&] {
    const float one = 1;
    const float beta = accumulate ? 1 : 0;
    check(cublasLtMatmul(handle_, plan.operation, &one, right.matrix.data, plan.a, left.matrix.data,
                         plan.b, &beta, result.data, plan.c, result.data, plan.c, &plan.algorithm,
                         workspace.data, bytes_of(workspace), stream.get()),
          "cublasLtMatmul");
  };
  if (plan.used) return multiply();
  plan.used = true;  // the first time its kernel is loaded
  meter_.book(&Closing::products, [&] {
    multiply();
    stream.synchronize();
  });
}

}  // namespace zeroplan::engine
