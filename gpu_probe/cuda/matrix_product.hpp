#pragma once
// One bf16 GEMM by cuBLASLt, with a workspace that we own.

#include "cost_model/kernel/gemm.hpp"
#include "gpu_probe/cuda/check.hpp"

namespace zeroplan {

/// cuBLASLt's handle and its workspace.
class ProductLibrary {
 public:
  ProductLibrary();
  ProductLibrary(const ProductLibrary&) = delete;
  ProductLibrary& operator=(const ProductLibrary&) = delete;
  ~ProductLibrary();

  cublasLtHandle_t handle() const { return handle_; }
  void* workspace() const { return workspace_.get(); }
  static constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

 private:
  cublasLtHandle_t handle_ = nullptr;
  DeviceMemory workspace_{workspace_bytes};
};

/// The product of random matrices in the layout of a linear's forward pass (TN), of its input's
/// gradient (NN) or of its weight's (NT): bf16 in and out, sums in fp32, the kernel that cuBLASLt
/// recommends first. Inputs rotate over more memory than the L2 cache holds.
class MatrixProduct {
 public:
  MatrixProduct(const ProductLibrary& library, const Gemm& gemm, const CudaStream& stream);
  MatrixProduct(const MatrixProduct&) = delete;
  MatrixProduct& operator=(const MatrixProduct&) = delete;
  ~MatrixProduct();

  void run(const CudaStream& stream);

 private:
  const ProductLibrary& library_;
  std::size_t a_elements_, b_elements_, c_elements_;
  std::size_t sets_, next_ = 0;
  DeviceMemory a_, b_, c_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_layout_ = nullptr, b_layout_ = nullptr, c_layout_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace zeroplan
