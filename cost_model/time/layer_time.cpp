// How long does one rank compute for one micro-batch? Front doors: layer_time, head_time.
#include "cost_model/time/layer_time.hpp"

#include "cost_model/recomputed.hpp"
#include "cost_model/time/core_attention.hpp"
#include "cost_model/time/layer_gemms.hpp"
#include "cost_model/time/layer_traffic.hpp"
#include "cost_model/time/time_constants.hpp"

namespace zeroplan {
namespace {

void add_gemms(BlockTime& time, const std::vector<Gemm>& gemms, const Problem& p) {
  for (const Gemm& gemm : gemms) {
    KernelTime& part = gemm.product == Product::forward          ? time.forward
                       : gemm.product == Product::input_gradient ? time.input_gradient
                                                                 : time.weight_gradient;
    part.gemm += gemm_seconds(gemm, p.cluster.gpu, p.training.precision, Pace::sustained);
  }
}

void add_traffic(BlockTime& time, const std::vector<Traffic>& traffic, const GpuSpec& gpu) {
  for (const Traffic& t : traffic) {
    time.forward.memory_bound += memory_bound_seconds(t.forward, t.access, gpu);
    time.input_gradient.memory_bound += memory_bound_seconds(t.backward, t.access, gpu);
  }
}

// Transformer Engine's default is cuDNN's kernel. The flash-attn package is FlashAttention-2 unless
// someone built its Hopper branch, and so is what PyTorch's scaled_dot_product_attention prefers
// (aten/src/ATen/native/transformers/cuda/sdp_utils.cpp).
FlashKernel flash_kernel(const RuntimeSpec& runtime) {
  const bool engine = runtime.kind == Runtime::megatron &&
                      runtime.megatron.attention_backend == AttentionLibrary::fused;
  if (engine) return FlashKernel::newest;
  const bool first = runtime.kind == Runtime::fsdp2 && runtime.fsdp2.flash_attention == 1;
  return first ? FlashKernel::flash1 : FlashKernel::flash2;
}

double attention_seconds(const Problem& p, Direction direction) {
  const AttentionShape shape = core_attention(p);
  const GpuSpec& gpu = p.cluster.gpu;
  return p.training.attention == AttentionKernel::flash
             ? flash_seconds(shape, direction, gpu, p.training.precision, flash_kernel(p.runtime))
             : unfused_seconds(shape, direction, gpu, p.training.precision);
}

// One pass of a layer.
double gap_seconds(const Problem& p) {
  return runs_local_layers(p) ? time_constants(p.cluster.gpu).kernels.local_gap : 0;
}

KernelTime recompute_time(const Problem& p,
                          LayerKind kind,
                          const std::vector<Gemm>& gemms,
                          const std::vector<Traffic>& traffic) {
  KernelTime time;
  for (const Gemm& gemm : gemms) {
    if (gemm.product == Product::forward && is_recomputed(p, kind, gemm.module)) {
      time.gemm += gemm_seconds(gemm, p.cluster.gpu, p.training.precision, Pace::sustained);
    }
  }
  if (is_recomputed(p, kind, core_attention_module)) {
    time.attention += attention_seconds(p, Direction::forward);
  }
  for (const Traffic& t : traffic) {
    if (is_recomputed(p, kind, t.module)) {
      time.memory_bound += memory_bound_seconds(t.forward, t.access, p.cluster.gpu);
    }
  }
  return time;
}

}  // namespace

BlockTime layer_time(const Problem& problem, LayerKind kind) {
  const std::vector<Gemm> gemms = layer_gemms(problem, kind);
  const std::vector<Traffic> traffic = layer_traffic(problem, kind);
  BlockTime time{.host = layer_host_time(problem, kind)};
  add_gemms(time, gemms, problem);
  add_traffic(time, traffic, problem.cluster.gpu);
  time.forward.attention = attention_seconds(problem, Direction::forward);
  time.input_gradient.attention = attention_seconds(problem, Direction::backward);
  time.recompute = recompute_time(problem, kind, gemms, traffic);
  time.forward.gaps = time.input_gradient.gaps = gap_seconds(problem);
  if (problem.layout.recompute == Recompute::full) time.recompute.gaps = time.forward.gaps;
  return time;
}

BlockTime embedding_time(const Problem& problem) {
  BlockTime time;
  add_traffic(time, embedding_traffic(problem), problem.cluster.gpu);
  return time;
}

BlockTime head_time(const Problem& problem) {
  BlockTime time;
  // The head stays in 16 bits where the layers have 8 (Transformer Engine; torchtitan's float8).
  Problem wide = problem;
  if (wide.training.precision == Precision::fp8) wide.training.precision = Precision::bf16;
  add_gemms(time, head_gemms(wide), wide);
  add_traffic(time, head_traffic(problem), problem.cluster.gpu);
  return time;
}

BlockTime mtp_ends_time(const Problem& problem) {
  BlockTime time = head_time(problem);
  add_traffic(time, embedding_traffic(problem), problem.cluster.gpu);
  add_gemms(time, mtp_projection_gemms(problem), problem);
  return time;
}

}  // namespace zeroplan
