// How long does the host take for a layer? Front doors: layer_host_time, layer_host_wait,
// expert_launch_gap.
#include "cost_model/kernel/host_time.hpp"

#include <algorithm>
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

constexpr double modules_of_attention = 3;

// How many modules of a layer the host launches itself; the others are in graphs.
double modules(const ModelSpec& model, LayerKind kind, const MegatronSettings& set) {
  double mixer = modules_of_attention;
  // Instead of one projection: queries down (if at all) and up, keys and values down and up.
  const bool scans = is_linear(kind) && model.state_space;
  if (const auto& mla = model.attention.mla) mixer += mla->q_lora_rank > 0 ? 3 : 2;
  if (!has_mixer(kind) || set.captures(scans ? GraphScope::mamba : GraphScope::attn)) mixer = 0;
  double mlp = modules_of_plain_layer - modules_of_attention;
  if (has_experts(kind) && model.moe->shared_intermediate_size > 0) mlp += 2;
  if (has_experts(kind) && model.moe->latent_size > 0) mlp += 2;
  const GraphScope part = has_experts(kind) ? GraphScope::moe : GraphScope::mlp;
  if (!has_feed_forward(kind) || set.captures(part)) mlp = 0;
  return mixer + mlp;
}

// Routing, dispatch and combination.
double experts_seconds(const HostConstants& host, const MegatronSettings& set) {
  if (set.captures(GraphScope::moe)) return 0;
  const bool routed =
      set.captures(GraphScope::moe_router) && set.captures(GraphScope::moe_preprocess);
  const double in_parts = set.overlap_moe_expert_parallel_comm ? host.in_parts : 0;
  return host.experts - (routed ? host.routing : 0) + in_parts;
}

// Beside the hosts that Transformer Engine's launches were measured on.
double slowness(const GpuSpec& gpu) {
  const HostConstants& host = time_constants(gpu).host;
  if (gpu.host_processor == HostProcessor::grace) return host.grace_slowness;
  return generation_of(gpu).name == "Ampere" ? host.ampere_slowness : 1;
}

HostTime engine_time(const Problem& p, LayerKind kind) {
  const HostConstants& host = time_constants(p.cluster.gpu).host;
  const MegatronSettings& set = p.runtime.megatron;
  const bool context = has_mixer(kind) && p.layout.cp > 1 && !set.captures(GraphScope::attn);
  const double more =
      (has_experts(kind) ? experts_seconds(host, set) : 0) + (context ? host.context : 0);
  const double part = modules(p.model, kind, set) / modules_of_plain_layer;
  const double slower = slowness(p.cluster.gpu);
  HostTime time{.forward = slower * (part * host.engine_forward + more),
                .backward = slower * (part * host.engine_backward + more)};
  if (p.layout.recompute == Recompute::full) time.backward += time.forward;
  return time;
}

}  // namespace

HostTime layer_host_time(const Problem& problem, LayerKind kind) {
  const Launcher launcher = kernel_habits(problem).launcher;
  if (launcher == Launcher::unmeasured) return {};
  if (launcher == Launcher::transformer_engine) return engine_time(problem, kind);
  const HostConstants& host = time_constants(problem.cluster.gpu).host;
  const double collectives =
      host.local_per_doubling_of_tp * std::log2(static_cast<double>(problem.layout.tp));
  const double softmax = softmax_is_plain(problem) ? host.plain_softmax : 0;
  const double both = host.local + collectives + softmax;
  // Forward is taken for half of the launches.
  return {.forward = 0,
          .backward = problem.layout.recompute == Recompute::full ? 1.5 * both : both};
}

HostTime layer_host_wait(const Problem& problem, LayerKind kind, const ModuleTimes& modules) {
  const ModuleTime* first = has_experts(kind) ? find(modules, Module::fc1) : nullptr;
  if (first == nullptr || !kernel_habits(problem).awaits_experts) return {};
  const double seconds = first->forward.total();
  return {.forward = seconds,
          .backward = problem.layout.recompute == Recompute::full ? seconds : 0};
}

double expert_launch_gap(const Problem& problem, const ModuleTimes& routed) {
  if (!kernel_habits(problem).launches_experts) return 0;
  double computed = 0;
  for (const Module module : {Module::casts, Module::fc1, Module::expert_activation, Module::fc2}) {
    if (const ModuleTime* known = find(routed, module)) computed += known->forward.total();
  }
  constexpr double products = 2;  // of an expert's forward pass
  const GpuSpec& gpu = problem.cluster.gpu;
  const auto experts = static_cast<double>(problem.model.moe->experts / problem.layout.ep);
  const double launched =
      slowness(gpu) * time_constants(gpu).host.expert_product * products * experts;
  return std::max(0.0, launched - computed);
}

}  // namespace zeroplan
