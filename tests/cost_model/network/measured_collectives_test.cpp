// Predicted times beside the measured ones of tests/reference/collectives.jsonl.

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <vector>

#include "cost_model/network/collective_time.hpp"
#include "tests/catch.hpp"
#include "tests/source_dir.hpp"

using namespace zeroplan;

namespace {

// What the corpus calls a fabric, as links. Ranks come from the row; the network is a whole node's,
// since one group has it to itself. Rows of one label are judged together.
struct Fabric {
  std::string_view label;
  std::string_view name;
  std::int64_t compute_capability;
  double gigabytes_per_second;
  double network_gigabytes_per_second = 0;
};

constexpr std::array fabrics{
    // nccl-tests by aiconfigurator; every second row was fitted on.
    Fabric{"A100", "A100-SXM NVLink3/NVSwitch 300 GB/s/dir", 80, 300},
    Fabric{"H100", "H100-SXM NVLink4/NVSwitch 450 GB/s/dir (NVLS)", 90, 450},
    Fabric{"H200", "H200-SXM NVLink4/NVSwitch 450 GB/s/dir (NVLS)", 90, 450},
    Fabric{"B200", "B200-SXM NVLink5/NVSwitch 900 GB/s/dir (NVLS)", 100, 900},
    Fabric{"GB200", "GB200 NVLink5 NVL 900 GB/s/dir", 100, 900},
    // Other people's clusters, never fitted on.
    Fabric{"vTrain A100", "A100-SXM NVLink3/NVSwitch", 80, 300},
    Fabric{"vTrain V100", "V100 NVLink2", 70, 150},
    Fabric{"Galvatron", "one node NVLink", 80, 300},  // does not name its GPU
    Fabric{"stas00 A100", "A100-SXM NVLink3 (one node)", 80, 300},
    Fabric{"stas00 H200", "H200 NVLink4 (NVLS, one node)", 90, 450},
    Fabric{"stas00 H200", "H200 NVLink4 NVLS", 90, 450},
    Fabric{"stas00 B200", "B200 NVLink5 (NVLS above 5 GPUs)", 100, 900},
    Fabric{"stas00 B200", "B200 NVLink5 NVLS", 100, 900},
    Fabric{"4 nodes, EFA", "B200 NVLink5 + 8x400G EFAv4 per node", 100, 900, 400},
    Fabric{"networks", "H200 NVLink4 + EFA (p5en, 3.2 Tb/s per node), Ring", 90, 450, 400},
    Fabric{"networks", "A100 NVLink3 + 4x200G IB per node", 80, 300, 100},
    Fabric{"networks", "A100-40G + 4x200G HDR per node", 80, 300, 100},
    Fabric{"networks", "H100 + 8x400G per node", 90, 450, 400},
};

Collective collective_of(const std::string& op) {
  if (op == "all_gather") return Collective::all_gather;
  if (op == "reduce_scatter") return Collective::reduce_scatter;
  return op == "all_reduce" ? Collective::all_reduce : Collective::all_to_all;
}

// In the mesh of a DGX-1 a few GPUs reach each other over a few of their links only.
bool uses_every_link(const Fabric& fabric, std::int64_t ranks) {
  return fabric.compute_capability != 70 || ranks == 8;
}

// Relative errors of the rows from `least` bytes on, by operation and label, in rising order.
std::map<std::string, std::vector<double>> errors(Bytes least) {
  std::map<std::string, std::vector<double>> all;
  std::ifstream file(source_dir() + "/tests/reference/collectives.jsonl");
  REQUIRE(file);
  for (std::string line; std::getline(file, line);) {
    const auto row = nlohmann::json::parse(line);
    if (row["fabric"].is_null() || row["bytes"].is_null()) continue;
    const auto fabric = std::ranges::find(fabrics, row["fabric"].get<std::string>(), &Fabric::name);
    const Bytes payload{row["bytes"].get<std::int64_t>()};
    if (fabric == fabrics.end() || payload < least) continue;
    const auto ranks = row["gpus"].get<std::int64_t>();
    if (!uses_every_link(*fabric, ranks)) continue;
    const std::int64_t nodes = row["nodes"].get<std::int64_t>();
    const CommunicationGroup group{
        .ranks = ranks,
        .ranks_per_node = ranks / nodes,
        .groups_sharing_network = nodes > 1 ? 1 : 0,
        .intra_node_bandwidth = fabric->gigabytes_per_second * giga,
        .inter_node_bandwidth = fabric->network_gigabytes_per_second * giga,
        .compute_capability = fabric->compute_capability};
    const Collective collective = collective_of(row["op"].get<std::string>());
    const double sent =
        static_cast<double>(sent_bytes_per_rank(collective, ranks, payload).count());
    const double measured = row["time_us"].is_null()
                                ? sent / (row["busbw_gb_s"].get<double>() * giga)
                                : row["time_us"].get<double>() * 1e-6;
    const double predicted = collective_time(collective, group, payload).seconds;
    all[std::string(name_of(collective)) + ", " + std::string(fabric->label)].push_back(
        std::abs(predicted / measured - 1));
  }
  for (auto& [label, list] : all) std::ranges::sort(list);
  return all;
}

struct Errors {
  double mean;
  double ninth_decile;
};

struct Bound {
  std::string_view label;
  Errors all;
  Errors large;  // from 16 MiB on, where bandwidth rules
};

constexpr std::array bounds{
    Bound{"all-reduce, A100", {0.11, 0.21}, {0.06, 0.12}},
    Bound{"all-reduce, H100", {0.06, 0.11}, {0.04, 0.11}},
    Bound{"all-reduce, H200", {0.06, 0.13}, {0.05, 0.11}},
    Bound{"all-reduce, B200", {0.07, 0.12}, {0.06, 0.15}},
    Bound{"all-reduce, GB200", {0.06, 0.09}, {0.06, 0.10}},
    Bound{"all-reduce, vTrain A100", {0.13, 0.41}, {0.05, 0.12}},
    Bound{"all-reduce, vTrain V100", {0.21, 0.27}, {0.20, 0.22}},
    Bound{"all-reduce, Galvatron", {0.25, 0.51}, {0.12, 0.21}},
    Bound{"all-reduce, stas00 A100", {0.24, 0.51}, {0.10, 0.23}},
    Bound{"all-reduce, stas00 H200", {0.18, 0.56}, {0.05, 0.08}},
    Bound{"all-reduce, stas00 B200", {0.22, 0.44}, {0.09, 0.20}},
    Bound{"all-reduce, 4 nodes, EFA", {0.52, 0.92}, {0.23, 0.61}},
    Bound{"all-reduce, networks", {0.09, 0.19}, {0.09, 0.19}},
    Bound{"all-gather, A100", {0.13, 0.21}, {0.10, 0.21}},
    Bound{"all-gather, H100", {0.08, 0.16}, {0.06, 0.12}},
    Bound{"all-gather, H200", {0.09, 0.17}, {0.05, 0.13}},
    Bound{"all-gather, B200", {0.09, 0.14}, {0.09, 0.27}},
    Bound{"all-gather, GB200", {0.06, 0.12}, {0.06, 0.14}},
    Bound{"all-gather, networks", {0.37, 0.37}, {0.37, 0.37}},
    Bound{"reduce-scatter, A100", {0.11, 0.19}, {0.08, 0.15}},
    Bound{"reduce-scatter, H100", {0.06, 0.12}, {0.04, 0.08}},
    Bound{"reduce-scatter, H200", {0.06, 0.15}, {0.03, 0.06}},
    Bound{"reduce-scatter, B200", {0.07, 0.13}, {0.08, 0.23}},
    Bound{"reduce-scatter, GB200", {0.05, 0.11}, {0.06, 0.13}},
    Bound{"all-to-all, A100", {0.11, 0.22}, {0.08, 0.21}},
    Bound{"all-to-all, H100", {0.13, 0.32}, {0.12, 0.33}},
    Bound{"all-to-all, H200", {0.12, 0.32}, {0.16, 0.40}},
    Bound{"all-to-all, B200", {0.08, 0.14}, {0.07, 0.14}},
    Bound{"all-to-all, GB200", {0.07, 0.15}, {0.09, 0.15}},
    Bound{"all-to-all, Galvatron", {0.33, 0.70}, {0.15, 0.24}},
};

void require_below(Bytes least, Errors Bound::*most) {
  const auto measured = errors(least);
  REQUIRE(measured.size() == bounds.size());
  for (const Bound& bound : bounds) {
    const std::vector<double>& list = measured.at(std::string(bound.label));
    const double mean =
        std::accumulate(list.begin(), list.end(), 0.0) / static_cast<double>(list.size());
    const double ninth_decile = list[(list.size() * 9 + 9) / 10 - 1];
    CAPTURE(bound.label, list.size(), mean, ninth_decile);
    CHECK(mean < (bound.*most).mean);
    CHECK(ninth_decile < (bound.*most).ninth_decile);
  }
}

}  // namespace

TEST_CASE("predicted times of collectives stay near measured ones") {
  require_below({}, &Bound::all);
}

TEST_CASE("predicted times of large collectives stay nearer") {
  require_below(16_MiB, &Bound::large);
}
