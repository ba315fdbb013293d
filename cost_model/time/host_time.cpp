// How long does the host take for a layer? Front door: layer_host_time.
#include "cost_model/time/host_time.hpp"

#include <cmath>

#include "cost_model/time/core_attention.hpp"
#include "cost_model/time/time_constants.hpp"

namespace zeroplan {
namespace {

bool softmax_is_plain(const Problem& p) {
  return p.training.attention == AttentionKernel::unfused && !core_attention(p).fused_softmax;
}

}  // namespace

HostTime layer_host_time(const Problem& problem) {
  if (problem.runtime.kind != Runtime::megatron) return {};
  const HostConstants& host = time_constants(problem.cluster.gpu).host;
  if (!problem.runtime.megatron.local_layers()) {
    HostTime time{.forward = host.engine_forward, .backward = host.engine_backward};
    if (problem.layout.recompute == Recompute::full) time.backward += time.forward;
    return time;
  }
  const double collectives =
      host.local_per_doubling_of_tp * std::log2(static_cast<double>(problem.layout.tp));
  const double softmax = softmax_is_plain(problem) ? host.plain_softmax : 0;
  const double both = host.local + collectives + softmax;
  // Forward is taken for half of the launches.
  return {.forward = 0, .backward = problem.layout.recompute == Recompute::full ? 1.5 * both : both};
}

}  // namespace zeroplan
