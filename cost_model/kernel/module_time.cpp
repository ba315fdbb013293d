// How long does a module compute? Front door: module_times.
#include "cost_model/kernel/module_time.hpp"

#include <algorithm>

#include "cost_model/kernel/core_attention.hpp"
#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/kernel/layer_gemms.hpp"
#include "cost_model/kernel/layer_traffic.hpp"

namespace zeroplan {
namespace {

double attention_seconds(const Problem& p, Direction direction) {
  const AttentionShape shape = core_attention(p);
  const GpuSpec& gpu = p.cluster.gpu;
  return p.training.attention == AttentionKernel::flash
             ? flash_seconds(shape, direction, gpu, p.training.precision, kernel_habits(p).flash)
             : unfused_seconds(shape, direction, gpu, p.training.precision);
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

ModuleTimes module_times(const Problem& problem, LayerKind kind, LayerPart part) {
  const GpuSpec& gpu = problem.cluster.gpu;
  ModuleTimes times;
  constexpr std::size_t usual = 24;
  times.reserve(usual);
  for (const Gemm& gemm : layer_gemms(problem, kind, part)) {
    of_product(at(times, gemm.module), gemm.product).gemm +=
        gemm_seconds(gemm, gpu, problem.training.precision, Pace::sustained);
  }
  for (const Traffic& t : layer_traffic(problem, kind, part)) {
    ModuleTime& time = at(times, t.module);
    const auto times_run = static_cast<double>(t.times);
    time.forward.memory_bound += times_run * memory_bound_seconds(t.forward, t.access, gpu);
    time.input_gradient.memory_bound += times_run * memory_bound_seconds(t.backward, t.access, gpu);
  }
  if (!has_rest(part)) return times;
  ModuleTime& attention = at(times, Module::core_attention);
  attention.forward.attention = attention_seconds(problem, Direction::forward);
  attention.input_gradient.attention = attention_seconds(problem, Direction::backward);
  return times;
}

}  // namespace zeroplan
