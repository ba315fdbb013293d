// On which GPUs? Front door: read_gpus.
#include "cli/request/read_gpus.hpp"

#include <fmt/format.h>

#include "cli/request/quantity.hpp"
#include "cli/request/words.hpp"
#include "presets/catalog.hpp"
#include "presets/input_error.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

constexpr std::int64_t most_typed_gpus = 10'000'000;

// A-100-80G is A-100-80GB.
std::string gpu_name(std::string name) {
  const bool short_unit = name.size() > 1 && (name.back() == 'G' || name.back() == 'g') &&
                          name[name.size() - 2] >= '0' && name[name.size() - 2] <= '9';
  return short_unit ? name + "B" : name;
}

ClusterSpec read_own_cluster(const LayoutArguments& a, Origin& origin) {
  if (!a.cluster_config.empty()) {
    origin.cluster_config = a.cluster_config;
    return read_cluster(a.cluster_config, "the plan's cluster");
  }
  ClusterSpec cluster = load_cluster(a.cluster, &origin.cluster_config);
  if (origin.cluster_config.empty()) origin.cluster_preset = cluster.name;
  return cluster;
}

std::optional<std::int64_t> read_nodes(const LayoutArguments& a, std::int64_t gpus_per_node) {
  if (!a.nodes) return std::nullopt;
  return gpus_per_node * read_whole("--nodes", *a.nodes, 1, most_typed_gpus / gpus_per_node);
}

std::optional<std::int64_t> read_count(const LayoutArguments& a,
                                       const GpuText& text,
                                       std::int64_t gpus_per_node) {
  const auto nodes = read_nodes(a, gpus_per_node);
  if (text.count.empty()) return nodes;
  const std::int64_t count = read_whole("--gpus", text.count, 1, most_typed_gpus);
  if (nodes && *nodes != count) {
    throw InputError(
        fmt::format("--nodes {}: of {} GPUs each these are {}, not {}; give one of "
                    "--nodes and a count in --gpus",
                    *a.nodes, gpus_per_node, *nodes, count));
  }
  return count;
}

// 16xp5.48xlarge: so many machines; one where no number is given.
GpuQuestion read_machines(const LayoutArguments& a,
                          const GpuText& text,
                          Origin& origin,
                          std::vector<std::string>& notes) {
  ClusterSpec cluster = find_cluster(text.gpu);
  origin.cluster_preset = cluster.name;
  const std::int64_t node = cluster.gpus_per_node;
  const auto nodes =
      text.count.empty()
          ? std::nullopt
          : std::optional(node * read_whole("--gpus", text.count, 1, most_typed_gpus / node));
  const auto count = nodes ? nodes : read_nodes(a, node);
  set_gpus(cluster, count.value_or(node), "--gpus");
  notes.push_back(fmt::format("each {} is a node of {} x {}", text.gpu, node, cluster.gpu.name));
  if (!count) notes.push_back(fmt::format("one {} (--gpus Nx{})", text.gpu, text.gpu));
  return {cluster};
}

}  // namespace

GpuQuestion read_gpus(const LayoutArguments& a, Origin& origin, std::vector<std::string>& notes) {
  const GpuText text = read_gpu_text(a.gpus);
  const std::string gpu = gpu_name(text.gpu);
  if (a.cluster.empty() && a.cluster_config.empty()) {
    if (a.gpus.empty()) {
      throw InputError("--gpus is missing: say how many of which, e.g. --gpus 128xA100-80GB");
    }
    if (gpu.empty()) {
      throw InputError(
          fmt::format("--gpus {}: must be COUNTxGPU, e.g. 128xA100-80GB", in_quotes(a.gpus)));
    }
    const bool machine = find_preset("gpus", gpu) == nullptr && find_preset("clusters", text.gpu);
    if (machine) return read_machines(a, text, origin, notes);
    const std::int64_t node = cluster_of(gpu, 1).gpus_per_node;
    const auto count = read_count(a, text, node);
    return {cluster_of(gpu, count.value_or(node), &notes), count.has_value()};
  }
  GpuQuestion question{read_own_cluster(a, origin)};
  ClusterSpec& cluster = question.cluster;
  if (const auto count = read_count(a, text, cluster.gpus_per_node)) {
    set_gpus(cluster, *count, text.count.empty() ? "--nodes" : "--gpus");
  }
  if (!gpu.empty() && gpu != cluster.gpu.name && find_gpu(gpu).name != cluster.gpu.name) {
    throw InputError(fmt::format("--gpus {}: cluster {} has {}", in_quotes(a.gpus), cluster.name,
                                 cluster.gpu.name));
  }
  return question;
}

}  // namespace zeroplan
