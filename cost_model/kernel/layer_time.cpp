// How long does one rank compute for one micro-batch? Front doors: layer_kernels, head_time.
#include "cost_model/kernel/layer_time.hpp"

#include <algorithm>

#include "cost_model/kernel/core_attention.hpp"
#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/kernel/layer_gemms.hpp"
#include "cost_model/kernel/layer_traffic.hpp"
#include "cost_model/kernel/time_constants.hpp"
#include "cost_model/rank/loss_parts.hpp"

namespace zeroplan {
namespace {

double sustained_seconds(const Gemm& gemm, const Problem& p) {
  return gemm_seconds(gemm, p.cluster.gpu, p.training.precision, Pace::sustained);
}

KernelTime& part_of(BlockTime& time, Product product) {
  return product == Product::forward          ? time.forward
         : product == Product::input_gradient ? time.input_gradient
                                              : time.weight_gradient;
}

void add_gemms(BlockTime& time, const std::vector<Gemm>& gemms, const Problem& p) {
  for (const Gemm& gemm : gemms) part_of(time, gemm.product).gemm += sustained_seconds(gemm, p);
}

void add_traffic(BlockTime& time, const std::vector<Traffic>& traffic, const GpuSpec& gpu) {
  for (const Traffic& t : traffic) {
    const auto times = static_cast<double>(t.times);
    time.forward.memory_bound += times * memory_bound_seconds(t.forward, t.access, gpu);
    time.input_gradient.memory_bound += times * memory_bound_seconds(t.backward, t.access, gpu);
  }
}

double attention_seconds(const Problem& p, Direction direction) {
  const AttentionShape shape = core_attention(p);
  const GpuSpec& gpu = p.cluster.gpu;
  return p.training.attention == AttentionKernel::flash
             ? flash_seconds(shape, direction, gpu, p.training.precision, kernel_habits(p).flash)
             : unfused_seconds(shape, direction, gpu, p.training.precision);
}

// One pass of a layer.
double gap_seconds(const Problem& p) {
  return runs_local_layers(p) ? time_constants(p.cluster.gpu).kernels.local_gap : 0;
}

// The part of a layer to which this module belongs.
KernelTime& part_of(LayerKernels& layer,
                    const Problem& p,
                    LayerKind kind,
                    std::string_view module) {
  const RepeatSet set = repeated_by(p, kind, module);
  const auto known = std::ranges::find(layer.parts, set, &RepeatedKernels::repeated_by);
  if (known != layer.parts.end()) return known->time;
  layer.parts.push_back({.repeated_by = set});
  return layer.parts.back().time;
}

}  // namespace

KernelTime LayerKernels::recompute(RepeatSet repeats) const {
  if ((repeats & whole_layer) != 0) return once.forward;
  KernelTime time;
  for (const RepeatedKernels& part : parts) {
    if ((repeats & part.repeated_by) != 0) time += part.time;
  }
  return time;
}

LayerKernels layer_kernels(const Problem& problem, LayerKind kind, LayerPart part) {
  const GpuSpec& gpu = problem.cluster.gpu;
  LayerKernels layer;
  BlockTime& once = layer.once;
  for (const Gemm& gemm : layer_gemms(problem, kind, part)) {
    const double seconds = sustained_seconds(gemm, problem);
    part_of(once, gemm.product).gemm += seconds;
    if (gemm.product == Product::forward) {
      part_of(layer, problem, kind, gemm.module).gemm += seconds;
    }
  }
  for (const Traffic& t : layer_traffic(problem, kind, part)) {
    const double seconds = memory_bound_seconds(t.forward, t.access, gpu);
    once.forward.memory_bound += seconds;
    once.input_gradient.memory_bound += memory_bound_seconds(t.backward, t.access, gpu);
    part_of(layer, problem, kind, t.module).memory_bound += seconds;
  }
  if (!has_rest(part)) return layer;
  once.forward.attention = attention_seconds(problem, Direction::forward);
  once.input_gradient.attention = attention_seconds(problem, Direction::backward);
  part_of(layer, problem, kind, core_attention_module).attention = once.forward.attention;
  once.forward.gaps = once.input_gradient.gaps = gap_seconds(problem);
  return layer;
}

BlockTime layer_time(const Problem& problem, LayerKind kind) {
  const LayerKernels layer = layer_kernels(problem, kind);
  BlockTime time = layer.once;
  time.recompute = layer.recompute(repeats(problem));
  time.host = layer_host_time(problem, kind);
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
  const LossParts parts = loss_parts(problem);
  if (parts.of_hidden()) {
    for (const Gemm& gemm : head_gemms(wide)) {
      time.forward.gemm += static_cast<double>(parts.count) * sustained_seconds(gemm, wide);
    }
  } else {
    add_gemms(time, head_gemms(wide), wide);
  }
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
