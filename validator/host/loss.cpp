// How wrong are the logits, and which way is better? Front door: HostDevice::loss_gradient.
#include <algorithm>
#include <cmath>
#include <limits>

#include "validator/host/host_device.hpp"

namespace zeroplan::engine {
namespace {

// Columns of this rank that are real tokens.
std::int64_t real_columns(const VocabularyPart& part) {
  return std::clamp<std::int64_t>(part.size - part.first, 0, part.rows);
}

}  // namespace

void HostDevice::loss_maximum(ConstHalf logits, const VocabularyPart& part, Wide maximum) {
  const std::int64_t real = real_columns(part);
  for (std::int64_t i = 0; i < logits.rows; ++i) {
    float most = -std::numeric_limits<float>::max();
    for (std::int64_t j = 0; j < real; ++j) {
      most = std::max(most, widen(logits.data[i * logits.columns + j]));
    }
    maximum.data[i] = most;
  }
}

void HostDevice::loss_sums(ConstHalf logits,
                           View<const std::int32_t> targets,
                           const VocabularyPart& part,
                           const LossSums& sums) {
  const std::int64_t real = real_columns(part);
  for (std::int64_t i = 0; i < logits.rows; ++i) {
    const Bf16* row = logits.data + i * logits.columns;
    float sum = 0;
    for (std::int64_t j = 0; j < real; ++j) {
      sum += std::exp(widen(row[j]) - sums.maximum.data[i]);
    }
    sums.sum.data[i] = sum;
    const std::int64_t own = targets.data[i] - part.first;
    sums.target.data[i] = own >= 0 && own < real ? widen(row[own]) : 0.0F;
  }
}

double HostDevice::loss_gradient(Half logits,
                                 View<const std::int32_t> targets,
                                 const VocabularyPart& part,
                                 const LossSums& sums,
                                 float scale) {
  const std::int64_t real = real_columns(part);
  double total = 0;
  for (std::int64_t i = 0; i < logits.rows; ++i) {
    const float most = sums.maximum.data[i];
    const float sum = sums.sum.data[i];
    total += static_cast<double>(most + std::log(sum) - sums.target.data[i]);
    const std::int64_t own = targets.data[i] - part.first;
    for (std::int64_t j = 0; j < logits.columns; ++j) {
      Bf16& logit = logits.data[i * logits.columns + j];
      const float probability = j < real ? std::exp(widen(logit) - most) / sum : 0.0F;
      logit = narrow((probability - (j == own ? 1.0F : 0.0F)) * scale);
    }
  }
  return total;
}

}  // namespace zeroplan::engine
