// How long does the host take for a layer? Front door: layer_host_time.
#include "cost_model/kernel/host_time.hpp"

#include <cmath>

#include "cost_model/kernel/core_attention.hpp"
#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/kernel/time_constants.hpp"

namespace zeroplan {
namespace {

bool softmax_is_plain(const Problem& p) {
  return p.training.attention == AttentionKernel::unfused && !core_attention(p).fused_softmax;
}

// Transformer Engine's linears and attention: a layer without latent attention or shared experts
// has four linears (Megatron-Core core/transformer/multi_latent_attention.py,
// moe/shared_experts.py).
constexpr double modules_of_plain_layer = 5;

double modules(const ModelSpec& model, LayerKind kind) {
  double count = modules_of_plain_layer;
  // Instead of one projection: queries down (if at all) and up, keys and values down and up.
  if (const auto& mla = model.attention.mla) count += mla->q_lora_rank > 0 ? 3 : 2;
  if (kind == LayerKind::moe && model.moe->shared_intermediate_size > 0) count += 2;
  return count;
}

}  // namespace

HostTime layer_host_time(const Problem& problem, LayerKind kind) {
  const Launcher launcher = kernel_habits(problem).launcher;
  if (launcher == Launcher::unmeasured) return {};
  const HostConstants& host = time_constants(problem.cluster.gpu).host;
  if (launcher == Launcher::transformer_engine) {
    const bool older = generation_of(problem.cluster.gpu).name == "Ampere";
    const double slowness = older ? host.ampere_slowness : 1;
    const double more =
        (kind == LayerKind::moe ? host.experts : 0) + (problem.layout.cp > 1 ? host.context : 0);
    const double part = modules(problem.model, kind) / modules_of_plain_layer;
    HostTime time{.forward = slowness * (part * host.engine_forward + more),
                  .backward = slowness * (part * host.engine_backward + more)};
    if (problem.layout.recompute == Recompute::full) time.backward += time.forward;
    return time;
  }
  const double collectives =
      host.local_per_doubling_of_tp * std::log2(static_cast<double>(problem.layout.tp));
  const double softmax = softmax_is_plain(problem) ? host.plain_softmax : 0;
  const double both = host.local + collectives + softmax;
  // Forward is taken for half of the launches.
  return {.forward = 0,
          .backward = problem.layout.recompute == Recompute::full ? 1.5 * both : both};
}

}  // namespace zeroplan
