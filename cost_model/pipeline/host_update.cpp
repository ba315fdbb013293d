// How long does the host take to update? Front door: host_update_seconds.
#include "cost_model/pipeline/host_update.hpp"

#include <algorithm>

namespace zeroplan {
namespace {

// In bytes a second.
struct HostRates {
  double memory = 0;  // of all channels of a node of two sockets
  double link = 0;    // of 16 lanes, one direction
};

HostRates rates_of(const GpuSpec& gpu) {
  constexpr std::int64_t ampere = 80;
  constexpr std::int64_t hopper = 90;
  if (gpu.compute_capability >= hopper) return {614e9, 64e9};  // DDR5-4800 x 16, PCIe 5
  if (gpu.compute_capability >= ampere) return {410e9, 32e9};  // DDR4-3200 x 16, PCIe 4
  return {256e9, 16e9};                                        // DDR4-2666 x 12, PCIe 3
}

constexpr double reached = 0.46;  // of the memory's rate, by DeepSpeed's CPU-Adam

}  // namespace

double host_link_bandwidth(const ClusterSpec& cluster) {
  return cluster.host_link_bandwidth > 0        ? cluster.host_link_bandwidth
         : cluster.gpu.host_link_bandwidth > 0  ? cluster.gpu.host_link_bandwidth
         : cluster.intra_node == LinkKind::pcie ? cluster.intra_node_bandwidth
                                                : rates_of(cluster.gpu).link;
}

double host_update_seconds(const Problem& p, std::int64_t updated, std::int64_t matrices) {
  const ClusterSpec& cluster = p.cluster;
  const HostRates rates = rates_of(cluster.gpu);
  const StateRecipe recipe = state_recipe(p);
  constexpr std::int64_t fp32 = 4;
  const Bytes states = rewritten_states(p.training.optimizer, recipe, updated, matrices);
  const std::int64_t ranks = std::min(cluster.gpus, cluster.gpus_per_node);
  const auto elements = static_cast<double>(updated);
  const double moved = static_cast<double>(states.count()) +
                       elements * static_cast<double>(fp32 + recipe.parameter_bytes);
  const double sent =
      elements * static_cast<double>(recipe.gradient_bytes + recipe.parameter_bytes);
  return sent / host_link_bandwidth(cluster) +
         moved * static_cast<double>(ranks) / (reached * rates.memory);
}

}  // namespace zeroplan
