// How does cuBLASLt multiply a linear's matrices? Front door: MatrixProduct.
#include "gpu_probe/cuda/matrix_product.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "gpu_probe/cuda/kernels.hpp"
#include "gpu_probe/environment_error.hpp"

namespace zeroplan {
namespace {

constexpr std::size_t beyond_cache = std::size_t{256} << 20;
constexpr std::size_t most_sets = 8;

std::size_t product(std::int64_t a, std::int64_t b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

cublasLtMatrixLayout_t layout(std::int64_t rows, std::int64_t columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, CUDA_R_16BF, static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), rows),
        "cublasLtMatrixLayoutCreate");
  return made;
}

std::size_t sets_of(std::size_t bytes) {
  return std::clamp<std::size_t>((beyond_cache + bytes - 1) / bytes, 1, most_sets);
}

}  // namespace

ProductLibrary::ProductLibrary() {
  check(cublasLtCreate(&handle_), "cublasLtCreate");
}

ProductLibrary::~ProductLibrary() {
  cublasLtDestroy(handle_);
}

// cuBLASLt counts columns first, so a row-major (m x n) result is its (n x m), and the operands
// change places: A is the linear's right one, B its left one.
MatrixProduct::MatrixProduct(const ProductLibrary& library, const Gemm& g, const CudaStream& stream)
    : library_(library),
      a_elements_(product(g.n, g.k)),
      b_elements_(product(g.m, g.k)),
      c_elements_(product(g.m, g.n)),
      sets_(sets_of(kernels::bf16_bytes * (a_elements_ + b_elements_ + c_elements_))),
      a_(kernels::bf16_bytes * sets_ * a_elements_),
      b_(kernels::bf16_bytes * sets_ * b_elements_),
      c_(kernels::bf16_bytes * sets_ * c_elements_) {
  kernels::fill_random(a_.get(), sets_ * a_elements_, 1, stream.get());
  kernels::fill_random(b_.get(), sets_ * b_elements_, 2, stream.get());
  check(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
        "cublasLtMatmulDescCreate");
  const bool a_turned = g.product == Product::forward;          // weights: one row an output
  const bool b_turned = g.product == Product::weight_gradient;  // gradients: one row a token
  const auto turn = [&](cublasLtMatmulDescAttributes_t which, bool turned) {
    const cublasOperation_t how = turned ? CUBLAS_OP_T : CUBLAS_OP_N;
    check(cublasLtMatmulDescSetAttribute(operation_, which, &how, sizeof how),
          "cublasLtMatmulDescSetAttribute");
  };
  turn(CUBLASLT_MATMUL_DESC_TRANSA, a_turned);
  turn(CUBLASLT_MATMUL_DESC_TRANSB, b_turned);
  a_layout_ = a_turned ? layout(g.k, g.n) : layout(g.n, g.k);
  b_layout_ = b_turned ? layout(g.m, g.k) : layout(g.k, g.m);
  c_layout_ = layout(g.n, g.m);

  cublasLtMatmulPreference_t preference = nullptr;
  check(cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
  const std::size_t workspace = ProductLibrary::workspace_bytes;
  check(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                             &workspace, sizeof workspace),
        "cublasLtMatmulPreferenceSetAttribute");
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t status =
      cublasLtMatmulAlgoGetHeuristic(library.handle(), operation_, a_layout_, b_layout_, c_layout_,
                                     c_layout_, preference, 1, &found, &count);
  cublasLtMatmulPreferenceDestroy(preference);
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  if (count == 0) {
    throw EnvironmentError(fmt::format("cuBLASLt has no kernel for {} x {} x {}", g.m, g.n, g.k));
  }
  algorithm_ = found.algo;
}

MatrixProduct::~MatrixProduct() {
  cublasLtMatrixLayoutDestroy(a_layout_);
  cublasLtMatrixLayoutDestroy(b_layout_);
  cublasLtMatrixLayoutDestroy(c_layout_);
  cublasLtMatmulDescDestroy(operation_);
}

void MatrixProduct::run(const CudaStream& stream) {
  const float one = 1;
  const float zero = 0;
  const auto part = [&](const DeviceMemory& memory, std::size_t elements) {
    return static_cast<void*>(static_cast<std::byte*>(memory.get()) + kernels::bf16_bytes * next_ * elements);
  };
  void* c = part(c_, c_elements_);
  check(cublasLtMatmul(library_.handle(), operation_, &one, part(a_, a_elements_), a_layout_,
                       part(b_, b_elements_), b_layout_, &zero, c, c_layout_, c, c_layout_,
                       &algorithm_, library_.workspace(), ProductLibrary::workspace_bytes,
                       stream.get()),
        "cublasLtMatmul");
  next_ = (next_ + 1) % sets_;
}

}  // namespace zeroplan
