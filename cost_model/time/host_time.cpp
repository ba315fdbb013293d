// How long does the host take for a layer? Front door: layer_host_time.
#include "cost_model/time/host_time.hpp"

#include <cmath>

#include "cost_model/time/core_attention.hpp"

namespace zeroplan {
namespace {

constexpr double ms = 1e-3;

// vTrain's single-node step times (VIA-Research/vTrain @f8dda84), all with full recompute: 3.0 ms a
// layer and micro-batch at any width where the GPU has less to do, of which two forward passes; 0.4
// to 0.5 ms more at tp 4 and 8.
constexpr double local_forward = 1.2 * ms;
constexpr double local_backward = 0.6 * ms;
constexpr double per_doubling_of_tp = 0.08 * ms;
// More launches where Megatron's fused softmax refuses the shape.
constexpr double plain_softmax = 0.55 * ms;

// SimuMax's B200 runs (MooreThreads/SimuMax docs/b200 @4dcaae5): 2.4 ms forward, and a bound of
// 2.6 ms for backward.
constexpr double engine_forward = 2.4 * ms;
constexpr double engine_backward = 2.4 * ms;

bool softmax_is_plain(const Problem& p) {
  return p.training.attention == AttentionKernel::unfused && !core_attention(p).fused_softmax;
}

}  // namespace

HostTime layer_host_time(const Problem& problem) {
  if (problem.runtime.kind != Runtime::megatron) return {};
  const bool local = problem.runtime.megatron.local_layers();
  const double collectives =
      local ? per_doubling_of_tp * std::log2(static_cast<double>(problem.layout.tp)) : 0;
  HostTime time{.forward = (local ? local_forward : engine_forward) + collectives,
                .backward = (local ? local_backward : engine_backward) + collectives};
  if (local && softmax_is_plain(problem)) {
    time.forward += plain_softmax;
    time.backward += plain_softmax;
  }
  if (problem.layout.recompute == Recompute::full) time.backward += time.forward;
  return time;
}

}  // namespace zeroplan
