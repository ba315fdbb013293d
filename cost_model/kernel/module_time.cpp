// How long does a module compute? Front door: module_times.
#include "cost_model/kernel/module_time.hpp"

#include <algorithm>

#include "cost_model/kernel/core_attention.hpp"
#include "cost_model/kernel/host_time.hpp"
#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/kernel/layer_gemms.hpp"
#include "cost_model/kernel/layer_traffic.hpp"
#include "cost_model/question/layer_width.hpp"

namespace zeroplan {
namespace {

// Core attention of the mean layer: windowed layers and others stand in turn, so that each stage
// has its share.
double attention_seconds(const Problem& p, Direction direction) {
  const AttentionShape shape = core_attention(p);
  const GpuSpec& gpu = p.cluster.gpu;
  if (p.training.attention != AttentionKernel::flash) {
    return unfused_seconds(shape, direction, gpu, p.training.precision);
  }
  const KernelHabits habits = kernel_habits(p);
  const auto flash = [&](const AttentionShape& s) {
    return flash_seconds(s, direction, gpu, p.training.precision, habits.flash);
  };
  const auto whole = [&] {
    if (!habits.attends_by_ring) return flash(shape);
    // Steps take turns on two streams.
    const double another = flash(keys_of_another(shape)) - flash_start(gpu, habits.flash);
    return flash(own_keys(shape)) + static_cast<double>(p.layout.cp - 1) * another;
  };
  const std::optional<AttentionShape> windowed = windowed_attention(p);
  if (!windowed) return whole();
  const double part =
      static_cast<double>(p.model.attention.windowed_layers) / static_cast<double>(p.model.layers);
  return part * flash(*windowed) + (1 - part) * whole();
}

ModuleTime& at(ModuleTimes& times, Module module) {
  const auto known = std::ranges::find(times, module, &ModuleTime::module);
  return known != times.end() ? *known : times.emplace_back(module);
}

KernelTime& of_product(ModuleTime& time, Product product) {
  return product == Product::forward          ? time.forward
         : product == Product::input_gradient ? time.input_gradient
                                              : time.weight_gradient;
}

Precision format_of(const Gemm& gemm, const Problem& p, const KernelHabits& habits) {
  const bool known = p.cluster.gpu.fp32_flops > 0;
  if (habits.wide_experts && gemm.groups > 1 && known) return Precision::fp32;
  const Precision usual = p.training.precision;
  const bool widens = is_quantized(usual) && habits.wide_weight_gradients;
  return widens && gemm.product == Product::weight_gradient ? Precision::bf16 : usual;
}

void add(ModuleTimes& times, const std::vector<Gemm>& gemms, const Problem& p) {
  const KernelHabits habits = kernel_habits(p);
  for (const Gemm& gemm : gemms) {
    const Precision own = format_of(gemm, p, habits);
    of_product(at(times, gemm.module), gemm.product).gemm +=
        gemm_seconds(gemm, p.cluster.gpu, own, Pace::sustained);
  }
}

void add(ModuleTimes& times, const std::vector<Traffic>& traffic, const Problem& p) {
  for (const Traffic& t : traffic) {
    ModuleTime& time = at(times, t.module);
    const auto seconds = [&](Bytes bytes) {
      return static_cast<double>(t.times) * memory_bound_seconds(bytes, t.access, p.cluster.gpu);
    };
    time.forward.memory_bound += seconds(t.forward);
    time.input_gradient.memory_bound += seconds(t.backward);
  }
}

double launch_gap_of(const ModuleTimes& routed) {
  const ModuleTime* const first = find(routed, Module::fc1);
  return first != nullptr ? first->forward.gaps : 0;
}

}  // namespace

const KernelTime& ModuleTime::at(Product product) const {
  return product == Product::forward          ? forward
         : product == Product::input_gradient ? input_gradient
                                              : weight_gradient;
}

const ModuleTime* find(const ModuleTimes& times, Module module) {
  const auto known = std::ranges::find(times, module, &ModuleTime::module);
  return known != times.end() ? &*known : nullptr;
}

ModuleTimes module_times(const Problem& asked, LayerKind kind, LayerPart part) {
  const OfKind of_kind(asked, kind);
  const Problem& problem = *of_kind;
  ModuleTimes times;
  times.reserve(has_rest(part) ? 24 : 8);  // as many as most have
  add(times, layer_gemms(problem, kind, part), problem);
  add(times, layer_traffic(problem, kind, part), problem);
  if (has_experts(kind) && has_routed(part)) {
    const double gap = has_rest(part) ? launch_gap_of(module_times(asked, kind, LayerPart::routed))
                                      : expert_launch_gap(problem, times);
    if (gap > 0) at(times, Module::fc1).forward.gaps = gap;
  }
  if (!has_rest(part) || is_linear(kind) || !has_mixer(kind)) return times;
  ModuleTime& attention = at(times, Module::core_attention);
  attention.forward.attention = attention_seconds(problem, Direction::forward);
  attention.input_gradient.attention = attention_seconds(problem, Direction::backward);
  return times;
}

ModuleTimes embedding_times(const Problem& problem) {
  ModuleTimes times;
  add(times, embedding_traffic(problem), problem);
  return times;
}

ModuleTimes head_times(const Problem& problem) {
  // The head stays in 16 bits where the layers have fewer (Transformer Engine; torchtitan's
  // float8), unless Megatron-Core is told otherwise.
  Problem wide = problem;
  const bool narrow = problem.runtime.megatron.fp8_output_proj;
  if (is_quantized(wide.training.precision) && !narrow) wide.training.precision = Precision::bf16;
  ModuleTimes times;
  add(times, head_gemms(wide), wide);
  add(times, head_traffic(problem), problem);
  return times;
}

ModuleTimes mtp_input_times(const Problem& problem) {
  ModuleTimes times = embedding_times(problem);
  add(times, mtp_projection_gemms(problem), problem);
  return times;
}

}  // namespace zeroplan
