#include "cost_model/network/topology.hpp"

#include <random>

#include "cost_model/network/node_counts.hpp"
#include "tests/catch.hpp"
#include "tests/cost_model/network/cluster_graph.hpp"
#include "tests/draws.hpp"

using namespace zeroplan;

namespace {

// Nodes of 8 GPUs on NVLink with 8 cards of 400 Gb/s.
ClusterSpec cluster(std::int64_t gpus) {
  return {.gpus = gpus,
          .gpus_per_node = 8,
          .intra_node_bandwidth = 450 * giga,
          .inter_node_bandwidth = 400 * giga,
          .network_cards = 8};
}

void require_equal(const CommunicationGroup& a, const CommunicationGroup& b) {
  REQUIRE(a.ranks == b.ranks);
  REQUIRE(a.ranks_per_node == b.ranks_per_node);
  REQUIRE(a.groups_sharing_network == b.groups_sharing_network);
  REQUIRE(a.intra_node_bandwidth == Approx(b.intra_node_bandwidth));
  REQUIRE(a.inter_node_bandwidth == Approx(b.inter_node_bandwidth));
}

}  // namespace

TEST_CASE("a group inside a node needs no network") {
  const CommunicationGroup tp = placement(cluster(16), {.name = "tp", .ranks = 8, .stride = 1});
  REQUIRE(tp.ranks_per_node == 8);
  REQUIRE(tp.groups_sharing_network == 0);
  REQUIRE(tp.inter_node_bandwidth == 0);
  REQUIRE(tp.intra_node_bandwidth == 450 * giga);
}

TEST_CASE("groups that meet on a node divide its cards") {
  // Stride 4: two ranks of each of four groups a node.
  const CommunicationGroup dp = placement(cluster(32), {.name = "dp", .ranks = 8, .stride = 4});
  REQUIRE(dp.ranks_per_node == 2);
  REQUIRE(nodes_of(dp) == 4);
  REQUIRE(dp.groups_sharing_network == 4);
  REQUIRE(dp.inter_node_bandwidth == 100 * giga);
}

TEST_CASE(
    "given tensor parallelism over a whole node, then each data-parallel group has one card") {
  const CommunicationGroup dp = placement(cluster(64), {.name = "dp", .ranks = 8, .stride = 8});
  REQUIRE(dp.ranks_per_node == 1);
  REQUIRE(dp.groups_sharing_network == 8);
  REQUIRE(dp.inter_node_bandwidth == 50 * giga);
}

TEST_CASE("one group over whole nodes has all cards") {
  const CommunicationGroup dp = placement(cluster(64), {.name = "dp", .ranks = 64, .stride = 1});
  REQUIRE(dp.ranks_per_node == 8);
  REQUIRE(dp.groups_sharing_network == 1);
  REQUIRE(dp.inter_node_bandwidth == 400 * giga);
}

// Ranks 6 7 | 8 and 15 | 16 17 straddle; node 1 carries both, so each has half of its cards.
TEST_CASE("given groups that straddle nodes, then the one with least is found") {
  const RankGroup tp{.name = "tp", .ranks = 3, .stride = 1};
  REQUIRE(!is_symmetric(cluster(24), tp));
  const CommunicationGroup placed = placement(cluster(24), tp);
  REQUIRE(placed.ranks_per_node == 3);
  REQUIRE(placed.groups_sharing_network == 2);
  REQUIRE(placed.inter_node_bandwidth == 200 * giga);
}

TEST_CASE("given a last node half full, then its ranks still have all its cards") {
  const RankGroup dp{.name = "dp", .ranks = 12, .stride = 1};
  REQUIRE(!is_symmetric(cluster(12), dp));
  const CommunicationGroup placed = placement(cluster(12), dp);
  REQUIRE(placed.ranks_per_node == 8);
  REQUIRE(nodes_of(placed) == 2);
  REQUIRE(placed.inter_node_bandwidth == 400 * giga);
}

TEST_CASE("on symmetric clusters the closed form equals the widest path") {
  std::mt19937 random(1);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution(low, high)(random);
  };
  int in_node = 0;
  int over_network = 0;
  for (int i = 0; i < 300; ++i) {
    Problem p;
    p.layout = {.dp = pick(1, 6), .tp = 1 << pick(0, 4), .pp = pick(1, 4), .cp = pick(1, 3)};
    p.cluster.gpus = world_size(p.layout);
    if (p.cluster.gpus > 64) continue;  // links repeat, so larger graphs only take longer
    p.cluster.gpus_per_node = 1 << pick(0, 4);
    p.cluster.network_cards = pick(1, 8);
    p.cluster.intra_node_bandwidth = static_cast<double>(pick(10, 900)) * giga;
    p.cluster.inter_node_bandwidth = static_cast<double>(pick(5, 400)) * giga;
    for (const RankGroup& group : rank_groups(p)) {
      if (!is_symmetric(p.cluster, group)) continue;
      const CommunicationGroup closed = symmetric_placement(p.cluster, group);
      ++(closed.groups_sharing_network > 0 ? over_network : in_node);
      CAPTURE(p.cluster.gpus_per_node, p.cluster.gpus, group.name, group.ranks, group.stride);
      require_equal(closed, graph_placement(p.cluster, group, pick(1, 4)));
    }
  }
  REQUIRE(in_node > 50);
  REQUIRE(over_network > 50);
}

TEST_CASE("groups that find different nodes are counted as the widest paths find them") {
  std::mt19937 random(2);
  const auto pick = [&](std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution(low, high)(random);
  };
  int in_node = 0;
  int over_network = 0;
  for (int i = 0; i < tests::draws(3000); ++i) {
    RankGroup group{.name = "dp", .ranks = pick(1, 8), .stride = pick(1, 10)};
    if (pick(0, 3) == 0) group.side_by_side = pick(1, group.stride);
    ClusterSpec spec = cluster(pick(1, 5) * group.span() + pick(0, 3));
    spec.gpus_per_node = pick(1, 12);
    if (spec.gpus > 64) continue;
    const CommunicationGroup counted = counted_placement(spec, group);
    ++(counted.groups_sharing_network > 0 ? over_network : in_node);
    CAPTURE(spec.gpus_per_node, spec.gpus, group.ranks, group.stride, group.side_by_side);
    require_equal(counted, graph_placement(spec, group));
  }
  REQUIRE(in_node > tests::draws(100));
  REQUIRE(over_network > tests::draws(500));
}

// One node more than what repeats, and a million.
TEST_CASE("a node is as crowded in a large cluster as where all ways to lie have been seen") {
  for (const std::int64_t stride : {1, 3, 6, 24, 1000}) {
    const RankGroup group{.name = "dp", .ranks = 15, .stride = stride};
    const NodeCounts small = node_counts(cluster(8 * group.span()), group);
    const NodeCounts large = node_counts(cluster(10'000'000), group);
    CAPTURE(stride);
    REQUIRE(small.ranks == large.ranks);
    REQUIRE(small.groups == large.groups);
  }
}
