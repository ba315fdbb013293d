#include <nlohmann/json.hpp>
#include <string>

#include "presets/catalog.hpp"
#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"
#include "tests/temporary_folder.hpp"

using namespace zeroplan;
using Catch::Matchers::WithinRel;

namespace {

const std::string small_cluster = R"({"name": "lab", "gpu": "A100-80GB", "gpus_per_node": 4,
  "intra_node": "nvlink", "intra_node_gigabytes_per_second_per_direction": 300,
  "network_cards": 2, "network_gigabits_per_second_per_card": 100)";

}  // namespace

TEST_CASE("each GPU loads, with less memory than its label says") {
  for (const std::string& name : preset_names("gpus")) {
    CAPTURE(name);
    const GpuSpec gpu = find_gpu(name);
    CHECK(gpu.name == name);
    std::vector<std::string> assumptions;
    CHECK(cluster_of(name, 8, &assumptions).gpu == gpu);
    CHECK(assumptions.empty() == (cluster_of(name, 8).intra_node != LinkKind::pcie));
    CHECK(gpu.fp16_flops >= 50e12);
    CHECK(gpu.memory_bandwidth >= 300e9);
    CHECK(gpu.memory.count() % mebi == 0);
    const std::size_t at = name.rfind('-');
    if (!name.ends_with("GB") || at == std::string::npos) continue;
    const double label = std::stod(name.substr(at + 1));
    CHECK(gibibytes(gpu.memory) < label);
    CHECK(gibibytes(gpu.memory) > 0.93 * label);
  }
}

TEST_CASE("products of 16 bits sustain what others do where a preset says nothing of them") {
  const GpuSpec limited = find_gpu("A100-PCIe-80GB");
  CHECK(limited.sustained_clock < 1);
  CHECK(limited.sustained_clock_16_bits == limited.sustained_clock);
  // Twelve hundred watts beside a thousand; an unthrottled GPU reaches 1.5 times as much.
  CHECK(find_gpu("GB200").sustained_clock_16_bits == 1.2);
  CHECK(find_gpu("GB300").sustained_clock_16_bits == 1.5);
}

TEST_CASE("superchips have a Grace for their host, and others none") {
  for (const std::string& name : preset_names("gpus")) {
    CAPTURE(name);
    CHECK((find_gpu(name).host_processor == HostProcessor::grace) == name.starts_with("G"));
  }
}

TEST_CASE("capacities are what PyTorch reports") {
  CHECK_THAT(gibibytes(find_gpu("A100-80GB").memory), WithinRel(79.14, 1e-4));
  CHECK_THAT(gibibytes(find_gpu("H100-80GB").memory), WithinRel(79.11, 1e-4));
  CHECK_THAT(gibibytes(find_gpu("V100-32GB").memory), WithinRel(31.73, 1e-4));
  CHECK_THAT(gibibytes(find_gpu("B200").memory), WithinRel(178.35, 1e-4));
  CHECK(find_gpu("V100").name == "V100-32GB");
  CHECK(find_gpu("A100").name == "A100-80GB");
  CHECK(find_gpu("A100-SXM4-80GB").name == "A100-80GB");
  CHECK(find_gpu("V100-32GB").bf16_flops == 0);
  CHECK(find_gpu("H100").bf16_flops == 989e12);
  CHECK(find_gpu("H100").compute_capability == 90);
  CHECK(find_gpu("MI300X").compute_capability == 0);
}

TEST_CASE("a count of GPUs comes in the nodes they usually stand in") {
  std::vector<std::string> assumptions;
  const ClusterSpec a100 = cluster_of("A100-80GB", 128, &assumptions);
  CHECK(a100.gpus == 128);
  CHECK(a100.gpus_per_node == 8);
  CHECK(a100.intra_node == LinkKind::nvlink);
  CHECK(a100.intra_node_bandwidth == 300e9);
  CHECK(a100.network_cards == 8);
  CHECK(a100.inter_node_bandwidth == 8 * 25e9);  // 8 x 200 Gb/s
  CHECK(assumptions.empty());
  CHECK(cluster_of("GB200", 144).gpus_per_node == 72);
  const ClusterSpec l40s = cluster_of("L40S", 16, &assumptions);
  CHECK(l40s.intra_node == LinkKind::pcie);
  CHECK(l40s.inter_node_bandwidth > 0);
  REQUIRE(assumptions.size() == 1);
  CHECK(says(assumptions.front(), "L40S are taken to stand 8 in a node on pcie at 31.5 GB/s"));
}

TEST_CASE("each cluster loads") {
  for (const std::string& name : preset_names("clusters")) {
    CAPTURE(name);
    const ClusterSpec cluster = find_cluster(name);
    CHECK(cluster.name == name);
    CHECK(cluster.gpus == cluster.gpus_per_node);
    CHECK(cluster.inter_node_bandwidth > 0);
    CHECK(cluster == load_cluster(name));
  }
  CHECK(find_cluster("aws-p4d").inter_node_bandwidth == 4 * 12.5e9);
  CHECK(find_cluster("dgx-a100").name == "dgx-a100-80gb");
}

TEST_CASE("a cluster file may bring its own GPU and say how many there are") {
  CHECK(read_cluster(small_cluster + "}", "lab").gpus == 4);
  CHECK(read_cluster(small_cluster + ", \"nodes\": 3}", "lab").gpus == 12);
  CHECK(read_cluster(small_cluster + ", \"gpus\": 6}", "lab").gpus == 6);
  auto own = nlohmann::json::parse(small_cluster + "}");
  own["gpu"] = {{"name", "mine"},
                {"memory_bytes", std::int64_t{1} << 34},
                {"tflops", {{"bf16", 100}}},
                {"memory_gigabytes_per_second", 500},
                {"host_processor", "Grace"}};
  const TemporaryFolder folder;
  const ClusterSpec cluster = load_cluster(folder.write("lab.json", own.dump()));
  CHECK(cluster.gpu.host_processor == HostProcessor::grace);
  own["gpu"]["host_processor"] = "grace";
  CHECK(says(error_text([&] { read_cluster(own.dump(), "lab"); }),
             "'host_processor' must be x86-64 or Grace, found 'grace'"));
  CHECK(cluster.gpu.name == "mine");
  CHECK(cluster.gpu.memory == 16_GiB);
  CHECK(cluster.gpu.bf16_flops == 100e12);
}

TEST_CASE("a cluster that cannot be is refused") {
  const auto text = [](const std::string& json) {
    return error_text([&] { read_cluster(json, "lab"); });
  };
  CHECK(says(text(small_cluster + ", \"nodes\": 2, \"gpus\": 9}"), "2 nodes of 4 GPUs are not 9"));
  CHECK(says(text(small_cluster + ", \"ndoes\": 2}"), "unknown key 'ndoes', nearest is 'nodes'"));
  CHECK(says(text("{\"name\": \"x\"}"), "'gpu' is missing"));
  auto changed = nlohmann::json::parse(small_cluster + "}");
  changed["intra_node"] = "nvlnk";
  CHECK(says(text(changed.dump()), "found 'nvlnk', nearest is 'nvlink'"));
  changed["intra_node"] = "pcie";
  changed["gpu"] = "A100-880GB";
  CHECK(says(text(changed.dump()), "no gpu is called 'A100-880GB', nearest is 'A100-80GB'"));
  changed["gpu"] = "A100-80GB";
  changed["network_cards"] = 0;
  changed["nodes"] = 2;
  CHECK(says(text(changed.dump()), "no network cards"));
  CHECK(says(error_text([] { load_cluster("dgx-h1000"); }), "nearest is 'dgx-h100'"));
  CHECK(says(error_text([] { load_cluster("none.json"); }), "no such file"));
  CHECK(says(error_text([] { cluster_of("A100-80GB", 0); }), "from 1 to 1000000"));
}

TEST_CASE("a cluster file may bring the times of its collectives") {
  const auto with = [](const std::string& tables) {
    return small_cluster + ", \"collectives\": [" + tables + "]}";
  };
  const std::string table = R"({"collective": "all-gather", "ranks": 4, "ranks_per_node": 4,
    "payload_bytes": [1024, 2048, 4096], "seconds": [3e-5, 2e-5, 4e-5]})";
  const ClusterSpec cluster = read_cluster(with(table), "lab");
  REQUIRE(cluster.measured.size() == 1);
  CHECK(cluster.measured[0].collective == Collective::all_gather);
  CHECK(cluster.measured[0].ranks_per_node == 4);
  // Twice the bytes took less time: noise, which the planner must not exploit.
  CHECK(cluster.measured[0].points ==
        std::vector<MeasuredPoint>{{Bytes{1024}, 3e-5}, {Bytes{2048}, 3e-5}, {Bytes{4096}, 4e-5}});
  const auto text = [&](const std::string& tables) {
    return error_text([&] { read_cluster(with(tables), "lab"); });
  };
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string copy = table;
    return text(copy.replace(copy.find(from), from.size(), to));
  };
  CHECK(says(text(table + "," + table), "collectives[1]: a second table of all-gather over 4"));
  CHECK(says(changed("all-gather", "all-gathr"), "found 'all-gathr', nearest is 'all-gather'"));
  CHECK(says(changed("2048", "1024"), "'payload_bytes' must rise, found 1024 after 1024"));
  CHECK(says(changed("3e-5, ", ""), "3 payloads and 2 times"));
  CHECK(says(changed("3e-5", "0"), "'seconds' must be above 0, found 0"));
  CHECK(says(changed("\"ranks_per_node\": 4", "\"ranks_per_node\": 5"), "from 1 to 4"));
}
