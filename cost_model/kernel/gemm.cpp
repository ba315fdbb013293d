// How long does a matrix product take? Front door: gemm_seconds.
#include "cost_model/kernel/gemm.hpp"

#include <algorithm>
#include <limits>

#include "cost_model/kernel/time_constants.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t fp32_sum = 8;  // bytes of an element, read and written back

double input_bytes(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return 4;
    case Precision::fp8:
      return 1;
    case Precision::nvfp4:
      return 0.5;
    case Precision::bf16:
    case Precision::fp16:
      break;
  }
  return 2;
}

double moved_bytes(const Gemm& g, Precision precision) {
  const auto inputs = static_cast<double>(g.m * g.k + g.k * g.n) * input_bytes(precision);
  const auto output = static_cast<double>(g.m * g.n * g.output_bytes);
  return static_cast<double>(g.groups) * (inputs + output);
}

// Whether each row of both inputs and of the output begins at 16 bytes. The features lie in rows,
// the tokens do not: m of a forward product, k of a weight gradient.
bool is_aligned(const Gemm& g, Precision precision) {
  const auto row = static_cast<std::int64_t>(16 / input_bytes(precision));
  const std::int64_t other = g.product == Product::weight_gradient ? g.m : g.k;
  return g.n % row == 0 && other % row == 0;
}

double narrow_rate(const kernels::GemmSpeed& speed, Precision precision) {
  return precision == Precision::fp8     ? speed.eight_bit
         : precision == Precision::nvfp4 ? speed.four_bit
                                         : 1;
}

double sustained_clock(const GpuSpec& gpu, Precision precision) {
  const bool sixteen_bits = precision == Precision::bf16 || precision == Precision::fp16;
  return sixteen_bits ? gpu.sustained_clock_16_bits : gpu.sustained_clock;
}

double efficiency(const Gemm& g, const GpuSpec& gpu, Precision precision, Pace pace) {
  const kernels::GemmSpeed& speed = generation_of(gpu).gemm;
  const double sustained =
      speed.sustained.efficiency * sustained_clock(gpu, precision) * narrow_rate(speed, precision);
  const double base =
      gpu.product_speed * (pace == Pace::burst ? speed.burst.efficiency : sustained);
  return g.output_bytes == fp32_sum ? base * time_constants(gpu).kernels.weight_gradient_rate
                                    : base;
}

}  // namespace

double flops(const Gemm& gemm) {
  return 2 * static_cast<double>(gemm.m) * static_cast<double>(gemm.n) *
         static_cast<double>(gemm.k) * static_cast<double>(gemm.groups);
}

double peak_flops(const GpuSpec& gpu, Precision precision) {
  switch (precision) {
    case Precision::bf16:
      return gpu.bf16_flops;
    case Precision::fp16:
      return gpu.fp16_flops;
    case Precision::fp32:
      return gpu.fp32_flops;
    case Precision::fp8:
      return gpu.fp8_flops;
    case Precision::nvfp4:
      return gpu.fp4_flops;
  }
  return 0;
}

double gemm_seconds(const Gemm& gemm, const GpuSpec& gpu, Precision precision, Pace pace) {
  const double peak = peak_flops(gpu, precision);
  if (peak <= 0) return std::numeric_limits<double>::infinity();
  const kernels::Shared& shared = time_constants(gpu).kernels;
  const kernels::GemmSpeed& speed = generation_of(gpu).gemm;
  const kernels::GemmRate& rate = pace == Pace::burst ? speed.burst : speed.sustained;
  // The bytes term of a grouped GEMM stands for the short k as well: its weights are loaded anew.
  const double k0 = gemm.groups > 1 ? 0 : rate.k0;
  const double arithmetic = flops(gemm) * (1 + k0 / static_cast<double>(gemm.k)) /
                            (efficiency(gemm, gpu, precision, pace) * gemm.rate * peak) *
                            (is_aligned(gemm, precision) ? 1 : shared.unaligned_slowness);
  const double memory = moved_bytes(gemm, precision) /
                        (shared.gemm_bandwidth * gpu.memory_speed * gpu.memory_bandwidth);
  const double exposed = gemm.groups > 1 ? speed.grouped_exposed : 0;
  return rate.start + std::max(arithmetic, memory) + exposed * std::min(arithmetic, memory);
}

}  // namespace zeroplan
