// Was this kind of run measured? Front door: measured_band.
#include "cost_model/runtime/measured_bands.hpp"

#include <algorithm>

namespace zeroplan {

std::int64_t product_bits(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return 32;
    case Precision::fp8:
      return 8;
    case Precision::nvfp4:
      return 4;
    case Precision::bf16:
    case Precision::fp16:
      break;
  }
  return 16;
}

std::optional<StepBand> measured_band(const Problem& p, std::span<const MeasuredBand> bands) {
  // Cards for desktops share the name of a generation, and none of its runs.
  constexpr std::int64_t desktop = 120;
  if (p.cluster.gpu.compute_capability >= desktop) return std::nullopt;
  const auto own = std::ranges::find_if(bands, [&](const MeasuredBand& b) {
    return b.architecture == p.cluster.gpu.architecture &&
           b.bits == product_bits(p.training.precision) && b.experts == p.model.moe.has_value();
  });
  if (own == bands.end()) return std::nullopt;
  return StepBand{own->half_width, true};
}

}  // namespace zeroplan
