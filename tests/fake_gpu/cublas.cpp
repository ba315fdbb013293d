// cuBLASLt without a device: it knows a kernel for every product, and multiplies nothing.
#include <cublasLt.h>

#include "tests/fake_gpu/fault.hpp"
#include "tests/fake_gpu/order.hpp"

namespace {

using namespace zeroplan::fake;

cublasStatus_t after(Fault fault) {
  if (fault == Fault::memory) return CUBLAS_STATUS_ALLOC_FAILED;
  return fault == Fault::error || broken() ? CUBLAS_STATUS_INTERNAL_ERROR : CUBLAS_STATUS_SUCCESS;
}

// Something to point to.
template <class Handle>
cublasStatus_t made(Handle* handle, Fault fault) {
  static int thing = 0;
  *handle = reinterpret_cast<Handle>(&thing);
  return after(fault);
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return made(handle, at_allocation());
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
  return CUBLAS_STATUS_SUCCESS;
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  return status == CUBLAS_STATUS_ALLOC_FAILED ? "CUBLAS_STATUS_ALLOC_FAILED"
                                              : "CUBLAS_STATUS_INTERNAL_ERROR";
}
std::size_t cublasLtGetVersion() {
  return 130000;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* made_here,
                                        cublasComputeType_t,
                                        cudaDataType_t) {
  return made(made_here, at_call());
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t,
                                              cublasLtMatmulDescAttributes_t,
                                              const void*,
                                              std::size_t) {
  return after(at_call());
}
cublasStatus_t cublasLtMatrixLayoutCreate(
    cublasLtMatrixLayout_t* made_here, cudaDataType, uint64_t, uint64_t, int64_t) {
  return made(made_here, at_call());
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* made_here) {
  return made(made_here, at_call());
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void*,
                                                    std::size_t) {
  return after(at_call());
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t,
                                              cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t,
                                              int,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  results[0] = {};
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return after(at_call());
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t,
                              cublasLtMatmulDesc_t,
                              const void*,
                              const void* a,
                              cublasLtMatrixLayout_t,
                              const void* b,
                              cublasLtMatrixLayout_t,
                              const void*,
                              const void*,
                              cublasLtMatrixLayout_t,
                              void* d,
                              cublasLtMatrixLayout_t,
                              const cublasLtMatmulAlgo_t*,
                              void*,
                              std::size_t,
                              cudaStream_t stream) {
  // Of each matrix the first element: how large they are is in what stands behind the handles.
  touches(stream, a, 1, false, "a product");
  touches(stream, b, 1, false, "a product");
  touches(stream, d, 1, true, "a product");
  return after(at_call());
}
}
