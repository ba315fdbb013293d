// How is a calibrated cluster written down? Front door: machine_json.
#include "cli/overlay/machine_json.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

constexpr double tera = 1e12;
constexpr double bytes_of_gigabit = giga / 8;

Json gpu_json(const GpuSpec& gpu) {
  Json peaks;
  for (const auto& [name, flops] : {std::pair{"fp32", gpu.fp32_flops},
                                    {"tf32", gpu.tf32_flops},
                                    {"fp16", gpu.fp16_flops},
                                    {"bf16", gpu.bf16_flops},
                                    {"fp8", gpu.fp8_flops},
                                    {"fp4", gpu.fp4_flops}}) {
    if (flops > 0) peaks[name] = flops / tera;
  }
  Json out{{"name", gpu.name},
           {"architecture", gpu.architecture},
           {"compute_capability", gpu.compute_capability},
           {"memory_bytes", gpu.memory.count()},
           {"tflops", peaks},
           {"memory_gigabytes_per_second", gpu.memory_bandwidth / giga},
           {"host_processor", name_of(gpu.host_processor)},
           {"sustained_clock", gpu.sustained_clock},
           {"sustained_clock_16_bits", gpu.sustained_clock_16_bits}};
  if (gpu.host_link_bandwidth > 0) {
    out["host_link_gigabytes_per_second_per_direction"] = gpu.host_link_bandwidth / giga;
  }
  return out;
}

Json tables_json(const std::vector<MeasuredCollective>& tables) {
  Json out = Json::array();
  for (const MeasuredCollective& table : tables) {
    Json one{{"collective", name_of(table.collective)},
             {"ranks", table.ranks},
             {"ranks_per_node", table.ranks_per_node}};
    for (const MeasuredPoint& point : table.points) {
      one["payload_bytes"].push_back(point.payload.count());
      one["seconds"].push_back(point.seconds);
    }
    out.push_back(std::move(one));
  }
  return out;
}

Json measured_json(const ClusterSpec& cluster) {
  Json out{
      {"speeds", {{"products", cluster.gpu.product_speed}, {"memory", cluster.gpu.memory_speed}}}};
  if (cluster.host_link_bandwidth > 0) {
    constexpr std::int64_t moved = 1 << 30;  // a rate is all that is kept
    out["transfers"] =
        Json::array({{{"transfer", "to_host"},
                      {"moved_bytes", moved},
                      {"gigabytes_per_second", cluster.host_link_bandwidth / giga}}});
  }
  const MeasuredOverheads& overheads = cluster.overheads;
  Json communicators = Json::array();
  for (const MeasuredOverheads::Communicator& c : overheads.communicators) {
    communicators.push_back({{"ranks", c.ranks}, {"created_bytes", c.bytes.count()}});
  }
  if (overheads.context > Bytes{} || !communicators.empty()) {
    out["memory"] = {{"context_bytes", overheads.context.count()},
                     {"communicators", communicators}};
  }
  return out;
}

}  // namespace

std::string machine_json(const Calibration& calibration, const std::string& trace) {
  const ClusterSpec& cluster = calibration.cluster;
  Json out{{"name", cluster.name},
           {"gpu", gpu_json(cluster.gpu)},
           {"gpus_per_node", cluster.gpus_per_node},
           {"gpus", cluster.gpus},
           {"intra_node", name_of(cluster.intra_node)},
           {"intra_node_gigabytes_per_second_per_direction", cluster.intra_node_bandwidth / giga},
           {"network_cards", cluster.network_cards}};
  if (cluster.network_cards > 0) {
    out["network_gigabits_per_second_per_card"] = cluster.inter_node_bandwidth /
                                                  static_cast<double>(cluster.network_cards) /
                                                  bytes_of_gigabit;
  }
  if (!cluster.measured.empty()) out["collectives"] = tables_json(cluster.measured);
  out["measured"] = measured_json(cluster);
  out["source"] = fmt::format("zeroplan overlay of {}", trace);
  out["note"] = fmt::format("{}. Not from the trace: {}.", fmt::join(calibration.taken, "; "),
                            fmt::join(calibration.left, "; "));
  return out.dump(1) + "\n";
}

}  // namespace zeroplan
