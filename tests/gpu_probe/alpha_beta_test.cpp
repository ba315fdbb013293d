#include "gpu_probe/alpha_beta.hpp"

#include <random>
#include <vector>

#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

// 12 us and 100 GB/s, from 1 KiB to 1 GiB.
std::vector<MeasuredPoint> straight_line() {
  std::vector<MeasuredPoint> points;
  for (std::int64_t bytes = 1024; bytes <= gibi; bytes *= 4) {
    points.push_back({Bytes{bytes}, 12e-6 + static_cast<double>(bytes) / 100e9});
  }
  return points;
}

}  // namespace

TEST_CASE("a line is found again") {
  const AlphaBeta fit = fit_alpha_beta(straight_line());
  CHECK(fit.latency == Approx(12e-6).epsilon(1e-6));
  CHECK(fit.bytes_per_second == Approx(100e9).epsilon(1e-6));
  CHECK(fit.worst_residual < 1e-6);
  CHECK(fit.seconds(1_MiB) == Approx(12e-6 + 1048576 / 100e9));
}

TEST_CASE("noise moves the line little, and single outliers hardly") {
  std::mt19937 random(3);
  std::normal_distribution<double> noise(1, 0.02);
  std::vector<MeasuredPoint> points = straight_line();
  for (MeasuredPoint& point : points) point.seconds *= noise(random);
  const AlphaBeta noisy = fit_alpha_beta(points);
  CHECK(noisy.latency == Approx(12e-6).epsilon(0.03));
  CHECK(noisy.bytes_per_second == Approx(100e9).epsilon(0.03));
  // The largest message took three times as long once: unweighted least squares would believe it.
  points.back().seconds *= 3;
  points[2].seconds *= 4;
  const AlphaBeta disturbed = fit_alpha_beta(points);
  CHECK(disturbed.latency == Approx(12e-6).epsilon(0.05));
  CHECK(disturbed.bytes_per_second == Approx(100e9).epsilon(0.05));
  CHECK(disturbed.worst_residual > 0.5);
}

TEST_CASE("neither latency nor time per byte is below zero") {
  const AlphaBeta steep = fit_alpha_beta(std::vector<MeasuredPoint>{{1_MiB, 1e-6}, {4_MiB, 9e-6}});
  CHECK(steep.latency == 0);
  CHECK(steep.bytes_per_second > 0);
  const AlphaBeta falling =
      fit_alpha_beta(std::vector<MeasuredPoint>{{1_MiB, 9e-6}, {4_MiB, 1e-6}});
  CHECK(falling.latency > 0);
  CHECK(falling.seconds(1_GiB) == falling.latency);
}

TEST_CASE("the median of an even number is between the middle two") {
  CHECK(median(std::vector<double>{3, 1, 2}) == 2);
  CHECK(median(std::vector<double>{4, 1, 2, 3}) == 2.5);
}
