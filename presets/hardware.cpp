// Which GPUs and links does a name stand for? Front door: cluster_of.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cost_model/network/fabric.hpp"
#include "presets/catalog.hpp"
#include "presets/fabric_preset.hpp"
#include "presets/input_error.hpp"
#include "presets/measured_collectives.hpp"
#include "presets/measured_overheads.hpp"
#include "presets/measured_speeds.hpp"
#include "presets/nearest_name.hpp"
#include "presets/strict_json.hpp"
#include "presets/text_file.hpp"

namespace zeroplan {
namespace {

constexpr Range gpu_counts{1, 10'000'000};
constexpr Range card_counts{0, 100'000};
constexpr double tera = 1e12;

LinkKind read_link(const JsonObject& object) {
  const std::string name = object.string("intra_node");
  if (const std::optional<LinkKind> link = parse_name<LinkKind>(name)) return *link;
  const std::vector<std::string> known(names<LinkKind>().begin(), names<LinkKind>().end());
  object.fail(fmt::format("'intra_node' must be nvlink, xgmi or pcie, found {}, nearest is '{}'",
                          in_quotes(name), nearest(name, known)));
}

HostProcessor read_host_processor(const JsonObject& object) {
  const auto name = object.find_string("host_processor");
  if (!name) return HostProcessor::x86;
  if (const auto known = parse_name<HostProcessor>(*name)) return *known;
  object.fail(fmt::format("'host_processor' must be {} or {}, found {}",
                          name_of(HostProcessor::x86), name_of(HostProcessor::grace),
                          in_quotes(*name)));
}

GpuSpec read_gpu(const JsonObject& object) {
  object.allow_only({"name", "aliases", "architecture", "compute_capability", "memory_bytes",
                     "memory_source", "tflops", "memory_gigabytes_per_second",
                     "host_link_gigabytes_per_second_per_direction", "host_processor",
                     "sustained_clock", "sustained_clock_16_bits", "intra_node",
                     "intra_node_gigabytes_per_second_per_direction", "typical_node", "source",
                     "verified", "note"});
  GpuSpec gpu;
  gpu.name = object.string("name");
  gpu.architecture = object.find_string("architecture").value_or("");
  gpu.compute_capability = object.find_integer("compute_capability", {0, 999}).value_or(0);
  gpu.memory = Bytes{object.integer("memory_bytes", {mebi, std::int64_t{1} << 50})};
  const JsonObject peaks = object.object("tflops");
  peaks.allow_only({"fp32", "tf32", "fp16", "bf16", "fp8", "fp4"});
  gpu.fp32_flops = peaks.find_number("fp32", 0).value_or(0) * tera;
  gpu.tf32_flops = peaks.find_number("tf32", 0).value_or(0) * tera;
  gpu.fp16_flops = peaks.find_number("fp16", 0).value_or(0) * tera;
  gpu.bf16_flops = peaks.find_number("bf16", 0).value_or(0) * tera;
  gpu.fp8_flops = peaks.find_number("fp8", 0).value_or(0) * tera;
  gpu.fp4_flops = peaks.find_number("fp4", 0).value_or(0) * tera;
  gpu.memory_bandwidth = object.number("memory_gigabytes_per_second", 1) * giga;
  gpu.host_link_bandwidth =
      object.find_number("host_link_gigabytes_per_second_per_direction", 1).value_or(0) * giga;
  gpu.host_processor = read_host_processor(object);
  gpu.sustained_clock = object.find_number("sustained_clock", 0.01).value_or(1);
  gpu.sustained_clock_16_bits =
      object.find_number("sustained_clock_16_bits", 0.01).value_or(gpu.sustained_clock);
  return gpu;
}

/// Links inside the node, on the level where presets of GPUs and of clusters agree.
void read_intra_node(const JsonObject& object, ClusterSpec& cluster) {
  cluster.intra_node = read_link(object);
  cluster.intra_node_bandwidth =
      object.number("intra_node_gigabytes_per_second_per_direction", 0.001) * giga;
}

void read_network(const JsonObject& object, ClusterSpec& cluster) {
  cluster.network_cards = object.integer("network_cards", card_counts);
  if (cluster.network_cards == 0) return;
  cluster.inter_node_bandwidth = static_cast<double>(cluster.network_cards) *
                                 object.number("network_gigabits_per_second_per_card", 0.001) *
                                 bytes_per_second_of_gigabit;
}

std::int64_t read_gpu_count(const JsonObject& object,
                            std::int64_t gpus_per_node,
                            std::int64_t default_nodes) {
  const auto gpus = object.find_integer("gpus", gpu_counts);
  const auto nodes = object.find_integer("nodes", gpu_counts);
  if (gpus && nodes && *gpus != *nodes * gpus_per_node) {
    object.fail(fmt::format("{} nodes of {} GPUs are not {} GPUs; give one of 'nodes' and 'gpus'",
                            *nodes, gpus_per_node, *gpus));
  }
  const std::int64_t count = gpus.value_or(nodes.value_or(default_nodes) * gpus_per_node);
  if (count > gpu_counts.most) object.fail(fmt::format("at most {} GPUs", gpu_counts.most));
  return count;
}

nlohmann::json parse_preset(const EmbeddedPreset& preset) {
  return parse_json(preset.json, fmt::format("{}/{}.json", preset.kind, preset.name));
}

}  // namespace

GpuSpec find_gpu(std::string_view name) {
  const EmbeddedPreset& preset = get_preset("gpus", name);
  const nlohmann::json document = parse_preset(preset);
  return read_gpu(JsonObject(document, fmt::format("gpus/{}.json", preset.name)));
}

ClusterSpec cluster_of(std::string_view gpu_name,
                       std::int64_t count,
                       std::vector<std::string>* assumptions) {
  if (count < gpu_counts.least || count > gpu_counts.most) {
    throw InputError(fmt::format("{} GPUs: from {} to {} are allowed", count, gpu_counts.least,
                                 gpu_counts.most));
  }
  const EmbeddedPreset& preset = get_preset("gpus", gpu_name);
  const nlohmann::json document = parse_preset(preset);
  const JsonObject object(document, fmt::format("gpus/{}.json", preset.name));
  const JsonObject node = object.object("typical_node");
  node.allow_only({"gpus", "network_cards", "network_gigabits_per_second_per_card", "assumed"});
  ClusterSpec cluster{.gpu = read_gpu(object), .gpus = count};
  cluster.name = fmt::format("{}x{}", count, cluster.gpu.name);
  cluster.gpus_per_node = node.integer("gpus", gpu_counts);
  read_intra_node(object, cluster);
  read_network(node, cluster);
  if (assumptions != nullptr && node.boolean("assumed") && count > 1) {
    assumptions->push_back(fmt::format(
        "{} are taken to stand {} in a node on {} at {} GB/s, with {:.0f} Gb/s between nodes",
        cluster.gpu.name, cluster.gpus_per_node, name_of(cluster.intra_node),
        cluster.intra_node_bandwidth / giga,
        cluster.inter_node_bandwidth / bytes_per_second_of_gigabit));
  }
  return cluster;
}

ClusterSpec read_cluster(std::string_view json_text, std::string_view where) {
  const nlohmann::json document = parse_json(json_text, where);
  const JsonObject object(document, std::string(where));
  object.allow_only({"name", "aliases", "gpu", "gpus_per_node", "gpus", "nodes", "intra_node",
                     "intra_node_gigabytes_per_second_per_direction", "network_cards",
                     "network_gigabits_per_second_per_card", "fabric", "collectives", "measured",
                     "source", "note"});
  ClusterSpec cluster;
  cluster.name = object.string("name");
  if (!object.has("gpu"))
    object.fail("'gpu' is missing: a GPU name, or an object as in a GPU preset");
  cluster.gpu = document.at("gpu").is_object() ? read_gpu(object.object("gpu"))
                                               : find_gpu(object.string("gpu"));
  cluster.gpus_per_node = object.integer("gpus_per_node", gpu_counts);
  read_intra_node(object, cluster);
  read_network(object, cluster);
  const std::optional<FabricSpec> fabric = read_fabric(object, cluster);
  const auto listed = fabric ? std::ssize(fabric->nodes) : 0;
  cluster.gpus = read_gpu_count(object, cluster.gpus_per_node, std::max<std::int64_t>(1, listed));
  cluster.measured = read_measured_collectives(object);
  cluster.overheads = read_measured_overheads(object);
  read_measured_speeds(object, cluster);
  if (cluster.network_cards == 0 && cluster.gpus > cluster.gpus_per_node) {
    object.fail(fmt::format("{} GPUs need more than one node, but there are no network cards",
                            cluster.gpus));
  }
  if (fabric) {
    cluster.fabric = {std::make_shared<const Fabric>(*fabric, cluster.gpus)};
    set_gpus(cluster, cluster.gpus, where);
  }
  return cluster;
}

void set_gpus(ClusterSpec& cluster, std::int64_t gpus, std::string_view where) {
  set_gpu_count(cluster, gpus);
  const std::int64_t nodes = cluster.fabric ? node_count(cluster.fabric->spec()) : 0;
  if (nodes > 0 && gpus > nodes * cluster.gpus_per_node) {
    throw InputError(
        fmt::format("{}: {} GPUs need more than the {} nodes of the fabric, of {} each", where,
                    gpus, nodes, cluster.gpus_per_node));
  }
}

ClusterSpec find_cluster(std::string_view name) {
  const EmbeddedPreset& preset = get_preset("clusters", name);
  return read_cluster(preset.json, fmt::format("clusters/{}.json", preset.name));
}

ClusterSpec load_cluster(std::string_view name_or_file, std::string* text) {
  if (find_preset("clusters", name_or_file) != nullptr) return find_cluster(name_or_file);
  const std::string path(name_or_file);
  std::error_code error;
  if (std::filesystem::exists(path, error) || lower_case(path).ends_with(".json")) {
    std::string file = read_text_file(path);
    ClusterSpec cluster = read_cluster(file, in_quotes(path));
    if (text != nullptr) *text = std::move(file);
    return cluster;
  }
  return find_cluster(name_or_file);  // says which name is nearest
}

}  // namespace zeroplan
