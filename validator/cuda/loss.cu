// How wrong are the logits on a GPU, and which way is better? Front door:
// CudaDevice::loss_gradient.
#include <algorithm>
#include <cfloat>
#include <vector>

#include "validator/cuda/cuda_device.hpp"
#include "validator/cuda/device_code.cuh"
#include "validator/cuda/kernels.hpp"
#include "validator/host/host_device.hpp"

namespace zeroplan::engine {
namespace {

using Ids = View<const std::int32_t>;

// Columns of this rank that are real tokens.
std::int64_t real_columns(const VocabularyPart& part) {
  return std::clamp<std::int64_t>(part.size - part.first, 0, part.rows);
}

// A block a row, in all three.
__global__ void loss_maximum_kernel(ConstHalf logits, std::int64_t real, Wide maximum) {
  const auto row = static_cast<std::int64_t>(blockIdx.x);
  float most = -FLT_MAX;
  for (std::int64_t j = threadIdx.x; j < real; j += blockDim.x) {
    most = fmaxf(most, wide(logits.data[row * logits.columns + j]));
  }
  most = block_maximum(most);
  if (threadIdx.x == 0) maximum.data[row] = most;
}

__global__ void loss_sums_kernel(
    ConstHalf logits, Ids targets, std::int64_t first, std::int64_t real, LossSums sums) {
  const auto row = static_cast<std::int64_t>(blockIdx.x);
  const Bf16* in = logits.data + row * logits.columns;
  const float most = sums.maximum.data[row];
  float sum = 0;
  for (std::int64_t j = threadIdx.x; j < real; j += blockDim.x) sum += expf(wide(in[j]) - most);
  sum = block_sum(sum);
  if (threadIdx.x != 0) return;
  const std::int64_t own = targets.data[row] - first;
  sums.sum.data[row] = sum;
  sums.target.data[row] = own >= 0 && own < real ? wide(in[own]) : 0.0F;
}

__global__ void loss_gradient_kernel(Half logits,
                                     Ids targets,
                                     std::int64_t first,
                                     std::int64_t real,
                                     LossSums sums,
                                     float scale,
                                     float* losses) {
  const auto row = static_cast<std::int64_t>(blockIdx.x);
  const float most = sums.maximum.data[row];
  const float sum = sums.sum.data[row];
  if (threadIdx.x == 0) losses[row] = most + logf(sum) - sums.target.data[row];
  const std::int64_t own = targets.data[row] - first;
  for (std::int64_t j = threadIdx.x; j < logits.columns; j += blockDim.x) {
    Bf16& logit = logits.data[row * logits.columns + j];
    const float probability = j < real ? expf(wide(logit) - most) / sum : 0.0F;
    logit = narrowed((probability - (j == own ? 1.0F : 0.0F)) * scale);
  }
}

}  // namespace

void CudaDevice::loss_maximum(ConstHalf logits, const VocabularyPart& part, Wide maximum) {
  loss_maximum_kernel<<<static_cast<unsigned>(logits.rows), block_threads, 0, stream_->get()>>>(
      logits, real_columns(part), maximum);
  check_launch("largest logit kernel");
}

void CudaDevice::loss_sums(ConstHalf logits,
                           Ids targets,
                           const VocabularyPart& part,
                           const LossSums& sums) {
  loss_sums_kernel<<<static_cast<unsigned>(logits.rows), block_threads, 0, stream_->get()>>>(
      logits, targets, part.first, real_columns(part), sums);
  check_launch("sum of exponentials kernel");
}

// Tokens' losses are added up here, in their order.
double CudaDevice::loss_gradient(
    Half logits, Ids targets, const VocabularyPart& part, const LossSums& sums, float scale) {
  float* losses = Scratch(workspace_).take(logits.rows);
  loss_gradient_kernel<<<static_cast<unsigned>(logits.rows), block_threads, 0, stream_->get()>>>(
      logits, targets, part.first, real_columns(part), sums, scale, losses);
  check_launch("loss gradient kernel");
  std::vector<float> all(static_cast<std::size_t>(logits.rows));
  download(all.data(), losses, logits.rows * static_cast<std::int64_t>(sizeof(float)));
  double total = 0;
  for (const float loss : all) total += static_cast<double>(loss);
  return total;
}

Kernels loss_kernels() {
  return {reinterpret_cast<const void*>(loss_maximum_kernel),
          reinterpret_cast<const void*>(loss_sums_kernel),
          reinterpret_cast<const void*>(loss_gradient_kernel)};
}

}  // namespace zeroplan::engine
