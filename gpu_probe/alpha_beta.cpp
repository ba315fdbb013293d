// Which latency and which rate explain the times best? Front door: fit_alpha_beta.
#include "gpu_probe/alpha_beta.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <vector>

namespace zeroplan {
namespace {

double bytes_of(const MeasuredPoint& point) {
  return static_cast<double>(point.payload.count());
}

struct Line {
  double latency = 0;
  double seconds_per_byte = 0;

  double residual(const MeasuredPoint& p) const {
    return (latency + seconds_per_byte * bytes_of(p) - p.seconds) / p.seconds;
  }
};

// Least squares of weight x (relative residual)^2, kept in the quadrant where both are real.
Line weighted_line(std::span<const MeasuredPoint> points, const std::vector<double>& weights) {
  // With u = 1/t and v = bytes/t the residual is latency u + seconds_per_byte v - 1.
  double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const double u = 1 / points[i].seconds;
    const double v = bytes_of(points[i]) / points[i].seconds;
    uu += weights[i] * u * u;
    uv += weights[i] * u * v;
    vv += weights[i] * v * v;
    u1 += weights[i] * u;
    v1 += weights[i] * v;
  }
  const double determinant = uu * vv - uv * uv;
  const Line line{(u1 * vv - v1 * uv) / determinant, (v1 * uu - u1 * uv) / determinant};
  if (line.latency < 0) return {0, v1 / vv};
  if (line.seconds_per_byte < 0) return {u1 / uu, 0};
  return line;
}

}  // namespace

double median(std::span<const double> values) {
  assert(!values.empty());
  std::vector<double> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

AlphaBeta fit_alpha_beta(std::span<const MeasuredPoint> points) {
  assert(points.size() >= 2);
  constexpr int rounds = 50;
  constexpr double huber = 1.345;        // 95 % as good as least squares on plain noise
  constexpr double deviation = 1.4826;   // of a normal spread, over its median |residual|
  constexpr double least_spread = 1e-3;  // no clock is better than that
  std::vector<double> weights(points.size(), 1);
  std::vector<double> residuals(points.size());
  Line line;
  for (int round = 0; round < rounds; ++round) {
    line = weighted_line(points, weights);
    for (std::size_t i = 0; i < points.size(); ++i) {
      residuals[i] = std::abs(line.residual(points[i]));
    }
    const double spread = std::max(least_spread, deviation * median(residuals));
    for (std::size_t i = 0; i < points.size(); ++i) {
      weights[i] = std::min(1.0, huber * spread / std::max(residuals[i], least_spread * spread));
    }
  }
  return {.latency = line.latency,
          .bytes_per_second = line.seconds_per_byte > 0 ? 1 / line.seconds_per_byte
                                                        : std::numeric_limits<double>::infinity(),
          .worst_residual = *std::max_element(residuals.begin(), residuals.end())};
}

}  // namespace zeroplan
