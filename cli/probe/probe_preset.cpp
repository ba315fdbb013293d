// How is a probed machine written down? Front door: probe_preset.
#include "cli/probe/probe_preset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "gpu_probe/alpha_beta.hpp"
#include "presets/catalog.hpp"
#include "presets/preset_file.hpp"

namespace zeroplan {
namespace {

using Json = nlohmann::ordered_json;

// "NVIDIA H100 80GB HBM3" is H100-80GB: the longest beginning that the catalog knows.
std::string catalog_name(const std::string& driver_name) {
  std::string name = driver_name;
  for (const std::string_view maker : {"NVIDIA ", "GeForce ", "Tesla ", "Quadro "}) {
    if (name.starts_with(maker)) name.erase(0, maker.size());
  }
  std::replace(name.begin(), name.end(), ' ', '-');
  while (!name.empty()) {
    if (find_preset("gpus", name) != nullptr) return find_gpu(name).name;
    const std::size_t dash = name.rfind('-');
    name.resize(dash == std::string::npos ? 0 : dash);
  }
  return {};
}

double rate(double amount, const Samples& seconds) {
  return amount / median(seconds);
}

double count(Bytes bytes) {
  return static_cast<double>(bytes.count());
}

double best_flops(const ProbeFacts& facts) {
  double best = 0;
  for (const GemmSamples& g : facts.gemms) best = std::max(best, rate(flops(g.gemm), g.seconds));
  return best;
}

double best_traffic(const ProbeFacts& facts) {
  double best = 0;
  for (const TransferSamples& t : facts.transfers) {
    if (t.transfer <= Transfer::write) best = std::max(best, rate(count(t.moved), t.seconds));
  }
  return best;
}

// Bytes a second between the slowest pair of GPUs; 0 where there is none.
double peer_rate(const ProbeFacts& facts) {
  double least = 0;
  for (const PeerSamples& p : facts.peers) {
    const double reached = rate(count(p.moved), p.seconds);
    least = least == 0 ? reached : std::min(least, reached);
  }
  return least;
}

Json gpu_of(const ProbeFacts& facts, const std::string& known) {
  const Device& device = facts.devices.front();
  Json gpu;
  if (known.empty()) {
    gpu = {{"name", device.name},
           {"compute_capability", device.compute_capability},
           {"tflops", {{"bf16", best_flops(facts) / 1e12}}},
           {"memory_gigabytes_per_second", best_traffic(facts) / giga}};
  } else {
    gpu = Json::parse(preset_json("gpus", known));
  }
  gpu["memory_bytes"] = facts.memory.total.count();
  gpu["memory_source"] = "cudaMemGetInfo";
  return gpu;
}

// Links as the catalog knows them, unless the pairs do not come near: GPUs of one name stand on
// NVLink and on PCIe.
void write_links(Json& preset, const ProbeFacts& facts, const std::string& known) {
  const double reached = peer_rate(facts);
  if (!known.empty()) {
    const Json gpu = Json::parse(preset_json("gpus", known));
    const double nominal =
        gpu.at("intra_node_gigabytes_per_second_per_direction").get<double>() * giga;
    if (reached == 0 || reached > nominal / 2) {
      preset["intra_node"] = gpu.at("intra_node");
      preset["intra_node_gigabytes_per_second_per_direction"] = nominal / giga;
      return;
    }
  }
  constexpr double alone = 1;  // a single GPU of no catalog: never used
  preset["intra_node"] = "pcie";
  preset["intra_node_gigabytes_per_second_per_direction"] = reached > 0 ? reached / giga : alone;
}

Json collectives_of(const ProbeFacts& facts) {
  std::map<std::pair<int, Collective>, std::vector<const CollectiveSamples*>> tables;
  for (const CollectiveSamples& line : facts.collectives) {
    tables[{line.ranks, line.collective}].push_back(&line);
  }
  Json list = Json::array();
  for (const auto& [key, lines] : tables) {
    Json table{
        {"collective", name_of(key.second)}, {"ranks", key.first}, {"ranks_per_node", key.first}};
    std::vector<MeasuredPoint> points;
    Json samples = Json::array();
    for (const CollectiveSamples* line : lines) {
      points.push_back({line->payload, median(line->seconds)});
      table["payload_bytes"].push_back(line->payload.count());
      table["seconds"].push_back(points.back().seconds);
      samples.push_back(line->seconds);
    }
    if (points.size() > 1) {
      const AlphaBeta fit = fit_alpha_beta(points);
      table["latency_seconds"] = fit.latency;
      table["bytes_per_second"] = fit.bytes_per_second;
      table["worst_residual"] = fit.worst_residual;
    }
    table["samples_seconds"] = samples;
    list.push_back(table);
  }
  return list;
}

Json memory_of(const ProbeFacts& facts) {
  const MemoryFacts& m = facts.memory;
  Json list = Json::array();
  for (const CommunicatorMemory& c : facts.communicators) {
    list.push_back({{"ranks", c.ranks},
                    {"created_bytes", c.created.count()},
                    {"first_small_all_reduce_bytes", c.after_small.count()},
                    {"first_large_all_reduce_bytes", c.after_large.count()},
                    {"first_sharding_bytes", c.after_sharding.count()}});
  }
  return {{"total_bytes", m.total.count()},
          {"context_bytes", m.context.count()},
          {"modules_bytes", m.modules.count()},
          {"cublas_bytes", m.cublas.count()},
          {"allocation_step_bytes", m.allocation_step.count()},
          {"minimum_granularity_bytes", m.minimum_granularity.count()},
          {"recommended_granularity_bytes", m.recommended_granularity.count()},
          {"communicators", list}};
}

std::string_view layout_name(Product product) {
  return product == Product::forward ? "TN" : product == Product::input_gradient ? "NN" : "NT";
}

Json rates_of(const ProbeFacts& facts) {
  Json gemms = Json::array();
  for (const GemmSamples& g : facts.gemms) {
    gemms.push_back({{"module", name_of(g.gemm.module)},
                     {"layout", layout_name(g.gemm.product)},
                     {"m", g.gemm.m},
                     {"n", g.gemm.n},
                     {"k", g.gemm.k},
                     {"tflops", rate(flops(g.gemm), g.seconds) / 1e12},
                     {"samples_seconds", g.seconds}});
  }
  Json transfers = Json::array();
  for (const TransferSamples& t : facts.transfers) {
    transfers.push_back({{"transfer", name_of(t.transfer)},
                         {"moved_bytes", t.moved.count()},
                         {"gigabytes_per_second", rate(count(t.moved), t.seconds) / giga},
                         {"samples_seconds", t.seconds}});
  }
  Json peers = Json::array();
  for (const PeerSamples& p : facts.peers) {
    peers.push_back({{"from", p.from},
                     {"to", p.to},
                     {"direct", p.direct},
                     {"moved_bytes", p.moved.count()},
                     {"gigabytes_per_second", rate(count(p.moved), p.seconds) / giga},
                     {"samples_seconds", p.seconds}});
  }
  return {{"gemms", gemms}, {"transfers", transfers}, {"peers", peers}};
}

}  // namespace

std::string probe_preset(const ProbeFacts& facts) {
  const std::string known = catalog_name(facts.devices.front().name);
  const auto devices = facts.devices.size();
  Json preset{{"name", fmt::format("{}-{}x{}", facts.host, devices,
                                   known.empty() ? facts.devices.front().name : known)},
              {"gpu", gpu_of(facts, known)},
              {"gpus_per_node", devices}};
  write_links(preset, facts, known);
  preset["network_cards"] = 0;
  preset["collectives"] = collectives_of(facts);
  Json measured{{"taken", facts.taken}, {"driver", facts.driver}, {"cuda", facts.cuda},
                {"nccl", facts.nccl},   {"cublas", facts.cublas}, {"memory", memory_of(facts)}};
  measured.update(rates_of(facts));
  if (const auto& clocks = facts.clocks) {
    measured["clocks"] = {{"megahertz", clocks->megahertz},
                          {"highest_megahertz", clocks->highest_megahertz},
                          {"held_back_by", clocks->held_back_by}};
  }
  preset["measured"] = measured;
  preset["source"] = fmt::format("zeroplan probe on {}, {}: driver for CUDA {}, CUDA {}, NCCL {}",
                                 facts.host, facts.taken, facts.driver, facts.cuda, facts.nccl);
  std::string note = "The network between nodes was not measured.";
  if (known.empty()) note += " The GPU is not in the catalog: its rates are what was reached.";
  preset["note"] = note;
  return preset.dump(1) + '\n';
}

}  // namespace zeroplan
