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

// csrc/flash_attn/flash_api.cpp mha_fwd (Dao-AILab/flash-attention v2.8.3);
// models/llama4/modeling_llama4.py _supports_flash_attn (huggingface/transformers v5.24.0).
Reason flash_attention_package(const Problem& p) {
  if (p.runtime.attn_implementation != AttnImplementation::flash_attention_2) return std::nullopt;
  const TrainingSpec& t = p.training;
  if (t.attention == AttentionKernel::unfused) {
    return "attn_implementation=flash_attention_2 is fused: --attention flash";
  }
  if (p.model.family.starts_with("llama4")) {
    return "Transformers has no flash_attention_2 for Llama 4: attn_implementation=sdpa";
  }
  return because(t.precision == Precision::fp32,
                 "flash_attention_2 computes in 16 bits, not in fp32: attn_implementation=sdpa");
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
