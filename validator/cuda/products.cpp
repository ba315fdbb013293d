// How does a GPU multiply matrices? Front door: Products.
#include "validator/cuda/products.hpp"

#include "validator/cuda/plain_product.hpp"

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
  bool by_library = false;  // else by our own kernel

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

// Whether cuBLASLt has a kernel for what the plan describes; then that is its algorithm.
bool Products::choose(
    Plan& plan, const Factor& left, const Factor& right, Half result, Wide workspace) {
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
  // Partial sums stay fp32, so that a result is rounded once.
  preference.set(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                 std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  cublasLtMatmulHeuristicResult_t best{};
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_, plan.operation, plan.a, plan.b, plan.c, plan.c, preference.get(), 1, &best, &count);
  // A row or an address that is only two bytes aligned may have none.
  if (status == CUBLAS_STATUS_NOT_SUPPORTED ||
      (status == CUBLAS_STATUS_SUCCESS && (count == 0 || best.state != CUBLAS_STATUS_SUCCESS))) {
    return false;
  }
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  plan.algorithm = best.algo;
  return true;
}

std::unique_ptr<Products::Plan> Products::planned(const Factor& left,
                                                  const Factor& right,
                                                  Half result,
                                                  Wide workspace) {
  auto plan = std::make_unique<Plan>();
  check(cublasLtMatmulDescCreate(&plan->operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  // Transposed, the operands change places.
  plan->turn(CUBLASLT_MATMUL_DESC_TRANSA, right.turned);
  plan->turn(CUBLASLT_MATMUL_DESC_TRANSB, left.turned);
  lay_out(plan->a, right.matrix);
  lay_out(plan->b, left.matrix);
  lay_out(plan->c, result);
  plan->by_library = choose(*plan, left, right, result, workspace);
  return plan;
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
  const auto multiply = [&](const Plan& plan) {
    if (!plan.by_library) return multiply_plainly(left, right, result, accumulate, stream);
    const float one = 1;
    const float beta = accumulate ? 1 : 0;
    check(cublasLtMatmul(handle_, plan.operation, &one, right.matrix.data, plan.a, left.matrix.data,
                         plan.b, &beta, result.data, plan.c, result.data, plan.c, &plan.algorithm,
                         workspace.data, bytes_of(workspace), stream.get()),
          "cublasLtMatmul");
  };
  if (const auto found = plans_.find(key); found != plans_.end()) return multiply(*found->second);
  // The first time a kernel is looked for and loaded.
  meter_.book(&Closing::products, [&] {
    const auto made = plans_.emplace(key, planned(left, right, result, workspace)).first;
    multiply(*made->second);
    stream.synchronize();
  });
}

}  // namespace zeroplan::engine
