// What is a norm on the host? Front door: HostDevice::norm.
#include <cmath>

#include "validator/host/host_device.hpp"

namespace zeroplan::engine {
namespace {

constexpr float epsilon = 1e-5F;

// The two statistics of a row; without centring the mean is 0 and not stored.
struct RowStatistics {
  float mean = 0;
  float reciprocal = 0;
};

RowStatistics read(ConstWide statistics, std::int64_t row) {
  const float* at = statistics.data + row * statistics.columns;
  return statistics.columns == 2 ? RowStatistics{at[0], at[1]} : RowStatistics{0, at[0]};
}

}  // namespace

void HostDevice::norm(ConstHalf x, const NormWeights& w, Half y, Wide statistics) {
  const auto width = static_cast<float>(x.columns);
  for (std::int64_t i = 0; i < x.rows; ++i) {
    const Bf16* row = x.data + i * x.columns;
    float mean = 0;
    if (w.centred()) {
      for (std::int64_t j = 0; j < x.columns; ++j) mean += widen(row[j]);
      mean /= width;
    }
    float squares = 0;
    for (std::int64_t j = 0; j < x.columns; ++j) {
      const float centred = widen(row[j]) - mean;
      squares += centred * centred;
    }
    const float reciprocal = 1.0F / std::sqrt(squares / width + epsilon);
    float* kept = statistics.data + i * statistics.columns;
    if (w.centred()) *kept++ = mean;
    *kept = reciprocal;
    for (std::int64_t j = 0; j < x.columns; ++j) {
      const float bias = w.centred() ? widen(w.bias.data[j]) : 0.0F;
      y.data[i * x.columns + j] =
          narrow((widen(row[j]) - mean) * reciprocal * widen(w.weight.data[j]) + bias);
    }
  }
}

// With n = (x - mean) r and g = dy w: dx = r (g - mean(g) - n mean(g n)), without centring no
// mean(g).
void HostDevice::norm_gradient(ConstHalf dy,
                               ConstHalf x,
                               ConstWide statistics,
                               const NormWeights& w,
                               ConstHalf residual,
                               Half dx,
                               const NormWeights& dw) {
  const std::int64_t width = x.columns;
  Scratch scratch(workspace_);
  float* weight = scratch.take(width);
  float* bias = scratch.take(width);
  for (std::int64_t j = 0; j < width; ++j) weight[j] = bias[j] = 0;
  for (std::int64_t i = 0; i < x.rows; ++i) {
    const auto [mean, reciprocal] = read(statistics, i);
    const Bf16* in = x.data + i * width;
    const Bf16* up = dy.data + i * width;
    float sum = 0;
    float product = 0;
    for (std::int64_t j = 0; j < width; ++j) {
      const float normal = (widen(in[j]) - mean) * reciprocal;
      const float gradient = widen(up[j]);
      weight[j] += gradient * normal;
      bias[j] += gradient;
      sum += gradient * widen(w.weight.data[j]);
      product += gradient * widen(w.weight.data[j]) * normal;
    }
    sum = w.centred() ? sum / static_cast<float>(width) : 0.0F;
    product /= static_cast<float>(width);
    for (std::int64_t j = 0; j < width; ++j) {
      const float normal = (widen(in[j]) - mean) * reciprocal;
      const float through =
          reciprocal * (widen(up[j]) * widen(w.weight.data[j]) - sum - normal * product);
      const std::int64_t at = i * width + j;
      const float beside = residual.data == nullptr ? 0.0F : widen(residual.data[at]);
      dx.data[at] = narrow(beside + through);
    }
  }
  for (std::int64_t j = 0; j < width; ++j) {
    dw.weight.data[j] = narrow(widen(dw.weight.data[j]) + weight[j]);
    if (w.centred()) dw.bias.data[j] = narrow(widen(dw.bias.data[j]) + bias[j]);
  }
}

}  // namespace zeroplan::engine
