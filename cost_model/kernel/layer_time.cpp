// How long does one rank compute for one micro-batch? Front doors: layer_time, fold_layer,
// head_time.
#include "cost_model/kernel/layer_time.hpp"

#include <algorithm>

#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/kernel/time_constants.hpp"
#include "cost_model/question/runtime_code.hpp"
#include "cost_model/rank/recomputed.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {
namespace {

// Where a kernel of the backward pass counts.
KernelTime& part_of(BlockTime& time, Product product) {
  return product == Product::forward          ? time.recompute
         : product == Product::input_gradient ? time.input_gradient
                                              : time.weight_gradient;
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

Block end_block(const Problem& p, BlockKind kind) {
  return code_of(p).block(p, weight_inventory(p.model), kind, LayerKind::dense, 0);
}

}  // namespace

KernelTime kernel_time(const Kernel& kernel, const ModuleTimes& times) {
  const ModuleTime* known = find(times, kernel.module);
  return known == nullptr ? KernelTime{} : kernel.times * known->at(kernel.product);
}

BlockTime fold_kernels(const Block& block, const ModuleTimes& times) {
  BlockTime time;
  for (const Event& event : block.forward) {
    if (event.computes()) time.forward += kernel_time(event.kernel(), times);
  }
  for (const Event& event : block.backward) {
    if (!event.computes()) continue;
    const Kernel kernel = event.kernel();
    part_of(time, kernel.product) += kernel_time(kernel, times);
  }
  return time;
}

BlockTime fold_layer(const Problem& problem,
                     const Block& block,
                     const ModuleTimes& times,
                     LayerPart part) {
  BlockTime time = fold_kernels(block, times);
  if (!has_rest(part)) return time;
  const double gaps = gap_seconds(problem);
  time.forward.gaps += gaps;
  time.input_gradient.gaps += gaps;
  if (repeats_all(block)) time.recompute.gaps += gaps;
  return time;
}

BlockTime layer_time(const Problem& problem, LayerKind kind) {
  const Block block = code_of(problem).block(problem, weight_inventory(problem.model),
                                             BlockKind::layer, kind, repeats(problem));
  const ModuleTimes modules = module_times(problem, kind);
  BlockTime time = fold_layer(problem, block, modules);
  time.host = layer_host_time(problem, kind);
  time.host += layer_host_wait(problem, kind, modules);
  return time;
}

BlockTime embedding_time(const Problem& problem) {
  return fold_kernels(end_block(problem, BlockKind::embedding), embedding_times(problem));
}

BlockTime head_time(const Problem& problem) {
  return fold_kernels(end_block(problem, BlockKind::head), head_times(problem));
}

}  // namespace zeroplan
