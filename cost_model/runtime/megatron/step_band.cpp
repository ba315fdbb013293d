// How far may a step of Megatron-Core be off? Front door: megatron_step_band.
#include "cost_model/kernel/layer_time.hpp"
#include "cost_model/kernel/time_constants.hpp"
#include "cost_model/runtime/measured_bands.hpp"
#include "cost_model/runtime/megatron/code.hpp"

namespace zeroplan {
namespace {

// Transformer Engine's runs: NVIDIA's tables (tests/reference/nvidia_tables.jsonl), GPT-OSS's among
// them, which are not fitted on; SimuMax's of B200 for 16 bits; those of NVIDIA's DGX Cloud
// (nvidia_dgxc.jsonl). Megatron-LM's own table and Llama 3's runs, whose micro-batches and chunks
// are assumed, lie inside but for 1.7B (tests/accuracy/published_runs_test.cpp).
constexpr MeasuredBand engine_bands[] = {
    {"Hopper", 16, false, 0.085},        {"Hopper", 16, true, 0.12},
    {"Hopper", 8, false, 0.065},         {"Hopper", 8, true, 0.14},
    {"Blackwell", 16, false, 0.1},       {"Blackwell", 16, true, 0.17},
    {"Blackwell", 8, false, 0.14},       {"Blackwell", 8, true, 0.205},
    {"Blackwell", 4, false, 0.27},       {"Blackwell Ultra", 16, true, 0.62},
    {"Blackwell Ultra", 8, false, 0.16}, {"Blackwell Ultra", 8, true, 0.125},
    {"Blackwell Ultra", 4, false, 0.27},
};

// Of state spaces and experts: Nemotron 3's runs (nvidia_tables.jsonl), on which the rate of the
// scan alone is fitted. Those in 4 bits leave in 16 what is not said here: the attention's and the
// latents' projections.
constexpr MeasuredBand hybrid_bands[] = {
    {"Hopper", 16, true, 0.3},          {"Hopper", 8, true, 0.22},
    {"Blackwell", 16, true, 0.35},      {"Blackwell", 8, true, 0.12},
    {"Blackwell", 4, true, 0.15},       {"Blackwell Ultra", 8, true, 0.115},
    {"Blackwell Ultra", 4, true, 0.18},
};

// Megatron-LM's own layers: Narayanan et al. 2021, Korthikanti et al. 2022, vTrain.
constexpr MeasuredBand local_bands[] = {{"Ampere", 16, false, 0.17}};

// Megatron-LM's functional tests are toys that wait for their host.
constexpr StepBand for_host{0.9, true};

// The bands of kinds that no row measures: each as wide as the worst of its like that a row does.
constexpr StepBand assumed_dense{0.27, false};
constexpr StepBand assumed_experts{0.62, false};
constexpr StepBand assumed_generation{0.7, false};

}  // namespace

bool waits_for_host(const Problem& p) {
  if (p.runtime.megatron.local_layers()) return false;
  const ByKind<std::int64_t> counts = layers_by_kind(p.model, 0, p.model.layers);
  double launched = 0, computed = 0;
  for (const LayerKind kind : all_layer_kinds) {
    if (counts[kind] == 0) continue;
    const BlockTime layer = layer_time(p, kind);
    const auto count = static_cast<double>(counts[kind]);
    launched += count * (layer.host.forward + layer.host.backward);
    computed += count * (layer.forward.total() + layer.backward().total());
  }
  // Launches and kernels that are nearer to each other both decide, and families hold such runs.
  constexpr double by_far = 2;
  return launched > by_far * computed;
}

StepBand megatron_step_band(const Problem& p) {
  if (p.runtime.megatron.local_layers()) {
    return measured_band(p, local_bands).value_or(assumed_generation);
  }
  if (waits_for_host(p)) return for_host;
  const auto measured = p.model.state_space     ? measured_band(p, hybrid_bands)
                        : keeps_states(p.model) ? std::nullopt
                                                : measured_band(p, engine_bands);
  if (measured) return *measured;
  if (!stand_in_generation(p.cluster.gpu).empty()) return assumed_generation;
  return p.model.moe ? assumed_experts : assumed_dense;
}

}  // namespace zeroplan
