// What stands between the two linears of an MLP? Front door: HostDevice::activation.
#include <cmath>

#include "validator/host/host_device.hpp"

namespace zeroplan::engine {
namespace {

float sigmoid(float x) {
  return 1.0F / (1.0F + std::exp(-x));
}

// GELU by tanh (Hendrycks and Gimpel 2016).
constexpr float root_two_over_pi = 0.7978845608F;
constexpr float cubic = 0.044715F;

float gelu(float x) {
  return 0.5F * x * (1.0F + std::tanh(root_two_over_pi * (x + cubic * x * x * x)));
}

float gelu_slope(float x) {
  const float t = std::tanh(root_two_over_pi * (x + cubic * x * x * x));
  const float inner = root_two_over_pi * (1.0F + 3.0F * cubic * x * x);
  return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * inner;
}

bool gated(ConstHalf x, std::int64_t width) {
  return x.columns == 2 * width;
}

}  // namespace

void HostDevice::activation(ConstHalf x, Half y) {
  const std::int64_t width = y.columns;
  const bool gates = gated(x, width);
  for (std::int64_t i = 0; i < y.rows; ++i) {
    const Bf16* in = x.data + i * x.columns;
    for (std::int64_t j = 0; j < width; ++j) {
      const float first = widen(in[j]);
      y.data[i * width + j] =
          narrow(gates ? first * sigmoid(first) * widen(in[width + j]) : gelu(first));
    }
  }
}

void HostDevice::activation_gradient(ConstHalf dy, ConstHalf x, Half dx) {
  const std::int64_t width = dy.columns;
  const bool gates = gated(x, width);
  for (std::int64_t i = 0; i < dy.rows; ++i) {
    const Bf16* in = x.data + i * x.columns;
    Bf16* out = dx.data + i * x.columns;
    for (std::int64_t j = 0; j < width; ++j) {
      const float gradient = widen(dy.data[i * width + j]);
      const float first = widen(in[j]);
      if (!gates) {
        out[j] = narrow(gradient * gelu_slope(first));
        continue;
      }
      const float s = sigmoid(first);
      out[j] = narrow(gradient * widen(in[width + j]) * s * (1.0F + first * (1.0F - s)));
      out[width + j] = narrow(gradient * first * s);
    }
  }
}

}  // namespace zeroplan::engine
