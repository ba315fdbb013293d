// Switches between nodes, as cluster presets say them.
#include "cost_model/network/fabric.hpp"
#include "presets/catalog.hpp"
#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"

using namespace zeroplan;

namespace {

std::string with_fabric(const std::string& fabric, const std::string& more = "") {
  return R"({"name": "lab", "gpu": "H100-80GB", "gpus_per_node": 8, "intra_node": "nvlink",
  "intra_node_gigabytes_per_second_per_direction": 450, "network_cards": 8,
  "network_gigabits_per_second_per_card": 400)" +
         more + R"(, "fabric": )" + fabric + "}";
}

const std::string leaf = R"({"name": "leaf", "joins": 4, "oversubscription": 2})";
const std::string spine = R"({"name": "spine"})";

std::string levels(const std::string& list, const std::string& more = "") {
  return R"({"levels": [)" + list + "]" + more + "}";
}

}  // namespace

TEST_CASE("a ratio is of what the level below can send, gigabits are of one switch") {
  const ClusterSpec cluster = read_cluster(
      with_fabric(levels(
          leaf +
          R"(, {"name": "pod", "joins": 3, "uplink_gigabits_per_second": 6400}, {"name": "spine"})")),
      "lab");
  const FabricSpec& fabric = cluster.fabric->spec();
  REQUIRE(fabric.levels.size() == 3);
  // 4 nodes of 400 GB/s, 2:1; 6400 Gb/s are 800 GB/s.
  CHECK(fabric.levels[0] == FabricLevel{"leaf", 4, 800 * giga});
  CHECK(fabric.levels[1] == FabricLevel{"pod", 3, 800 * giga});
  CHECK(fabric.levels[2] == FabricLevel{"spine", 0, 0});
  // Of a rail's switch: eight of them.
  const ClusterSpec rails = read_cluster(
      with_fabric(levels(
          R"({"name": "leaf", "joins": 4, "uplink_gigabits_per_second": 800}, {"name": "spine"})",
          R"(, "rails": "optimized")")),
      "lab");
  CHECK(rails.fabric->spec().levels[0].uplink == 800 * giga);
  // A ratio above a ratio: 3 x 800 / 2.
  const ClusterSpec tapered = read_cluster(
      with_fabric(
          levels(leaf + R"(, {"name": "pod", "joins": 3, "oversubscription": 2}, )" + spine)),
      "lab");
  CHECK(tapered.fabric->spec().levels[1].uplink == 1200 * giga);
}

TEST_CASE("nodes that are listed are the nodes there are, in their order") {
  const std::string nodes = R"(, "nodes": [5, "0-2", 9])";
  ClusterSpec cluster = read_cluster(with_fabric(levels(leaf + "," + spine, nodes)), "lab");
  CHECK(cluster.gpus == 40);
  CHECK(cluster.fabric->places(5) == std::vector<std::int64_t>{5, 0, 1, 2, 9});
  CHECK(cluster.fabric->gpus() == 40);
  set_gpus(cluster, 16, "--gpus");
  CHECK(cluster.fabric->gpus() == 16);
  CHECK(error_text([&] { set_gpus(cluster, 48, "--gpus"); }) ==
        "--gpus: 48 GPUs need more than the 5 nodes of the fabric, of 8 each");
  CHECK(
      read_cluster(with_fabric(levels(leaf + "," + spine, nodes), R"(, "gpus": 24)"), "lab").gpus ==
      24);
  CHECK(read_cluster(with_fabric(levels(leaf + "," + spine)), "lab").gpus == 8);
}

TEST_CASE("equal fabrics make equal clusters") {
  const auto read = [](const std::string& nodes) {
    return read_cluster(with_fabric(levels(leaf + "," + spine, nodes)), "lab");
  };
  CHECK(read("") == read(""));
  CHECK_FALSE(read(R"(, "nodes": [0, 1])") == read(R"(, "nodes": [0, 2])"));
  CHECK_FALSE(read("") == read_cluster(with_fabric(levels(spine)), "lab"));
}

TEST_CASE("a fabric that cannot be is refused in one line") {
  const auto text = [](const std::string& fabric, const std::string& more = "") {
    const std::string line = error_text([&] { read_cluster(with_fabric(fabric, more), "lab"); });
    CHECK(line.find('\n') == std::string::npos);
    return line;
  };
  const std::string both = leaf + "," + spine;
  CHECK(says(text("[]"), "'fabric' must be an object"));
  CHECK(says(text("{}"), "'levels' must be a list of 1 to 8"));
  CHECK(says(text(levels("")), "'levels' must be a list of 1 to 8"));
  CHECK(says(text(levels(both, R"(, "rial": 1)")), "unknown key 'rial', nearest is 'rails'"));
  CHECK(says(text(levels(R"({"name": "leaf", "joins": 4}, )" + spine)),
             "levels[0]: give one of 'oversubscription' and 'uplink_gigabits_per_second'"));
  CHECK(says(text(levels(
                 R"({"name": "leaf", "joins": 4, "oversubscription": 2,
                    "uplink_gigabits_per_second": 100}, )" +
                 spine)),
             "give one of"));
  CHECK(
      says(text(levels(leaf)), "levels[0]: the last level, 'leaf', joins all: it has no uplinks"));
  CHECK(says(text(levels(leaf + "," + leaf + "," + spine)), "a second level is called 'leaf'"));
  CHECK(says(text(levels(R"({"name": "leaf", "joins": 0, "oversubscription": 2}, )" + spine)),
             "'joins' must be an integer from 1"));
  CHECK(says(text(levels(R"({"name": "leaf", "joins": 2, "oversubscription": 0}, )" + spine)),
             "oversubscription"));
  CHECK(says(text(levels(both, R"(, "rails": "optimised")")), "nearest is 'optimized'"));
  CHECK(says(text(levels(spine, R"(, "rails": "optimized")")), "no level is above the first"));
  CHECK(says(text(levels(both, R"(, "nodes": [])")), "'nodes' must be a list"));
  CHECK(says(text(levels(both, R"(, "nodes": [0, 1, 0])")), "place 0 stands twice"));
  for (const std::string bad :
       {"-1", "\"3-1\"", "\"a\"", "1.5", "\"-\"", "\"1-\"", "\"0--2\"", "99999999999"}) {
    CHECK(says(text(levels(both, ", \"nodes\": [" + bad + "]")), "found " + bad));
  }
  CHECK(says(text(levels(both, R"(, "nodes": ["0-999999", "1000000-1999999"])")), "1000000"));
  CHECK(says(text(levels(both, R"(, "nodes": ["0-3"])"), R"(, "gpus": 40)"),
             "40 GPUs need more than the 4 nodes"));
  const std::string small = leaf + R"(, {"name": "spine", "joins": 2})";
  CHECK(says(text(levels(small, R"(, "nodes": [8])")), "place 8, but the switches join 8"));
  CHECK(says(text(levels(small), R"(, "gpus": 72)"), "72 GPUs need more than the 8 nodes"));

  const auto changed = [&](const std::string& from, const std::string& to,
                           const std::string& fabric) {
    std::string copy = with_fabric(fabric);
    copy.replace(copy.find(from), from.size(), to);
    return error_text([&] { read_cluster(copy, "lab"); });
  };
  CHECK(says(changed("\"network_cards\": 8", "\"network_cards\": 0", levels(both)),
             "there are no network cards"));
  CHECK(says(changed("nvlink", "pcie", levels(both, R"(, "rails": "only")")),
             "rails that never meet need nvlink or xgmi"));
  CHECK(says(
      changed("\"network_cards\": 8", "\"network_cards\": 3", levels(both, R"(, "rails": "only")")),
      "found 8 and 3"));
}

TEST_CASE("published clusters say their switches") {
  const FabricSpec meta = find_cluster("llama3-24k").fabric->spec();
  // A pod of 384 nodes of 400 GB/s, 1:7 above it; eight of them.
  REQUIRE(meta.levels.size() == 3);
  CHECK(meta.levels[0].uplink == 2 * 400 * giga);
  CHECK(meta.levels[1].uplink == Approx(384 * 400 * giga / 7));
  ClusterSpec cluster = find_cluster("meta-24k");
  set_gpus(cluster, 24'576, "--gpus");
  CHECK(says(error_text([&] { set_gpus(cluster, 24'584, "--gpus"); }), "more than the 3072 nodes"));
  CHECK(find_cluster("superpod-h100").fabric->spec().rails == Rails::optimized);
}
