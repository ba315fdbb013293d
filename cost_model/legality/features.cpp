// Do the features go together in this runtime? Front door: number_format.
#include <fmt/format.h>

#include "cost_model/kernel/gemm.hpp"
#include "cost_model/legality/reasons.hpp"

namespace zeroplan::legality {
Reason number_format(const Problem& p) {
  const Precision precision = p.training.precision;
  const GpuSpec& gpu = p.cluster.gpu;
  if (peak_flops(gpu, precision) > 0) return std::nullopt;
  if (precision == Precision::fp32) return fmt::format("no fp32 rate of {} is known", gpu.name);
  return fmt::format("{} has no {} matrix units", gpu.name, name_of(precision));
}

Reason no_fp8(const Problem& p) {
  return because(is_quantized(p.training.precision), "{} has no {} recipe", runtime_name(p),
                 name_of(p.training.precision));
}

Reason no_nvfp4(const Problem& p) {
  return because(p.training.precision == Precision::nvfp4, "{} has no nvfp4 recipe",
                 runtime_name(p));
}

Reason full_recompute_only(const Problem& p) {
  return because(p.layout.recompute == Recompute::selective,
                 "{} recomputes whole layers or nothing", runtime_name(p));
}

Reason no_offload(const Problem& p) {
  if (Reason moved = no_offload_of_activations(p)) return moved;
  return because(p.layout.offload != Offload::none, "{} has no offload", runtime_name(p));
}

Reason optimizer_offload_only(const Problem& p) {
  if (Reason moved = no_offload_of_activations(p)) return moved;
  return because(p.layout.offload == Offload::parameters, "{} offloads the optimizer only",
                 runtime_name(p));
}

Reason no_offload_of_activations(const Problem& p) {
  return because(
      p.layout.offload == Offload::activations,
      "{} with offload of activations is not modelled; deepspeed moves checkpoints to the host",
      runtime_name(p));
}

}  // namespace zeroplan::legality
