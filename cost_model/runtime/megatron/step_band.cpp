// How far may a step of Megatron-Core be off? Front door: megatron_step_band.
#include <algorithm>

#include "cost_model/kernel/layer_time.hpp"
#include "cost_model/kernel/time_constants.hpp"
#include "cost_model/runtime/megatron/code.hpp"

namespace zeroplan {
namespace {

// Bits of what products read.
std::int64_t product_bits(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return 32;
    case Precision::fp8:
      return 8;
    case Precision::nvfp4:
      return 4;
    case Precision::bf16:
    case Precision::fp16:
      break;
  }
  return 16;
}

// Transformer Engine's runs. NVIDIA's tables (tests/reference/nvidia_tables.jsonl), with each model
// on each GPU left out in turn; SimuMax's of B200 for 16 bits. Half widths hold 95 of 100 of a
// family by nearest rank; of those with fewer than ten rows, what holds all of them and half as
// much again.
struct Family {
  std::string_view architecture;
  std::int64_t bits;
  bool experts;
  double half_width;
};
constexpr Family families[] = {
    {"Hopper", 16, true, 0.27},          {"Hopper", 8, false, 0.15},
    {"Hopper", 8, true, 0.65},           {"Blackwell", 16, false, 0.09},
    {"Blackwell", 16, true, 0.2},        {"Blackwell", 8, false, 0.15},
    {"Blackwell", 8, true, 0.21},        {"Blackwell", 4, false, 0.23},
    {"Blackwell Ultra", 16, true, 0.55}, {"Blackwell Ultra", 8, false, 0.15},
    {"Blackwell Ultra", 8, true, 0.26},  {"Blackwell Ultra", 4, false, 0.23},
};

// Of any kind that no row measures: as wide as the worst of its like that one does.
constexpr StepBand assumed_dense{0.25, false};
constexpr StepBand assumed_experts{0.65, false};
constexpr StepBand assumed_generation{0.7, false};

// Megatron-LM's functional tests are toys that wait for their host: nine of ten lie so near.
constexpr StepBand waits_for_host{0.9, true};

bool host_is_slower_by_far(const Problem& p) {
  const LayerKind kind = p.model.moe ? LayerKind::moe : LayerKind::dense;
  const BlockTime layer = layer_time(p, kind);
  // Nearer to each other, both decide, and families hold such runs.
  constexpr double by_far = 2;
  return layer.host.forward + layer.host.backward >
         by_far * (layer.forward.total() + layer.backward().total());
}

}  // namespace

StepBand megatron_step_band(const Problem& p) {
  if (p.runtime.megatron.local_layers()) return {0.17, true};
  if (host_is_slower_by_far(p)) return waits_for_host;
  const std::int64_t bits = product_bits(p.training.precision);
  const bool experts = p.model.moe.has_value();
  const auto* own = std::ranges::find_if(families, [&](const Family& f) {
    return f.architecture == p.cluster.gpu.architecture && f.bits == bits && f.experts == experts;
  });
  // Cards for desktops share the name of a generation, and none of its runs.
  constexpr std::int64_t desktop = 120;
  const bool among_them = p.cluster.gpu.compute_capability < desktop;
  if (among_them && own != std::ranges::end(families)) return {own->half_width, true};
  if (!stand_in_generation(p.cluster.gpu).empty()) return assumed_generation;
  return experts ? assumed_experts : assumed_dense;
}

}  // namespace zeroplan
