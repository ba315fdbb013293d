// How long does one rank compute for one micro-batch? Front doors: layer_time, fold_layer,
// head_time.
#include "cost_model/kernel/layer_time.hpp"

#include <algorithm>

#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/kernel/layer_gemms.hpp"
#include "cost_model/kernel/layer_traffic.hpp"
#include "cost_model/kernel/time_constants.hpp"
#include "cost_model/question/runtime_code.hpp"
#include "cost_model/rank/loss_parts.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/states/model_states.hpp"

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

// One pass of a layer.
double gap_seconds(const Problem& p) {
  return runs_local_layers(p) ? time_constants(p.cluster.gpu).kernels.local_gap : 0;
}

// Whether the backward pass runs the whole forward pass once more.
bool repeats_all(const Block& block) {
  const auto forward_kernels = [&](const std::vector<Event>& events) {
    return std::ranges::count_if(events, [&](const Event& event) {
      return event.computes() && event.kernel().product == Product::forward;
    });
  };
  return forward_kernels(block.forward) == forward_kernels(block.backward);
}

}  // namespace

BlockTime fold_kernels(const Block& block, const ModuleTimes& times) {
  BlockTime time;
  const auto add = [&](const Event& event, bool forward_pass) {
    if (!event.computes()) return;
    const auto [module, product] = event.kernel();
    const ModuleTime* known = find(times, module);
    if (known == nullptr) return;
    const bool again = product == Product::forward && !forward_pass;
    (again ? time.recompute : part_of(time, product)) += known->at(product);
  };
  for (const Event& event : block.forward) add(event, true);
  for (const Event& event : block.backward) add(event, false);
  return time;
}

BlockTime fold_layer(const Problem& problem,
                     const Block& block,
                     const ModuleTimes& times,
                     LayerPart part) {
  BlockTime time = fold_kernels(block, times);
  if (!has_rest(part)) return time;
  time.forward.gaps = time.input_gradient.gaps = gap_seconds(problem);
  if (repeats_all(block)) time.recompute.gaps = time.forward.gaps;
  return time;
}

BlockTime layer_time(const Problem& problem, LayerKind kind) {
  const Block block = code_of(problem).block(problem, weight_inventory(problem.model),
                                             BlockKind::layer, kind, repeats(problem));
  BlockTime time = fold_layer(problem, block, module_times(problem, kind));
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
  // The head stays in 16 bits where the layers have fewer (Transformer Engine; torchtitan's
  // float8).
  Problem wide = problem;
  if (is_quantized(wide.training.precision)) wide.training.precision = Precision::bf16;
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
