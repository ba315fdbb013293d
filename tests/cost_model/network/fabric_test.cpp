// What switches between nodes leave groups of ranks, as computed by hand.
#include "cost_model/network/fabric.hpp"

#include "cost_model/network/collective_time.hpp"
#include "cost_model/network/topology.hpp"
#include "cost_model/network/tuning.hpp"
#include "tests/catch.hpp"
#include "tests/cost_model/network/fabrics.hpp"

using namespace zeroplan;
using tests::eights;
using tests::joined_by;
using tests::leaves_and_spine;

namespace {

constexpr Bytes large{std::int64_t{1} << 34};

double seconds(Collective collective, const ClusterSpec& cluster, const RankGroup& group) {
  return collective_time(collective, cluster, group, large).seconds;
}

}  // namespace

// Eight nodes below two leaves of four. Uplinks of a leaf: 4 x 400 / 2 = 800 GB/s.
TEST_CASE("a fat tree with 2:1 uplinks halves what all of a leaf send at once") {
  const ClusterSpec free = eights(8);
  const ClusterSpec half = joined_by(leaves_and_spine(4, 2), free);

  // Two stages of four nodes: node 0 to node 4, 1 to 5 ... Each of 4 x 8 GPUs sends up:
  // 800 / 32 = 25 GB/s, where its card has 400 / 8 = 50.
  const RankGroup pp{.name = "pp", .ranks = 2, .stride = 32};
  const Bottleneck sends = bottleneck(half, pp, Pattern::chain);
  REQUIRE(sends.name == "uplinks of leaf 0");
  REQUIRE(sends.capacity == Approx(800 * giga));
  REQUIRE(sends.groups == 32);
  REQUIRE(sends.share == Approx(25 * giga));
  // Latency: 14 us of the network, and 0.8 x (8 + 0.17) us.
  const double bytes = static_cast<double>(large.count());
  REQUIRE(seconds(Collective::send_recv, half, pp) ==
          Approx(0.8 * 8.17e-6 + 14e-6 + bytes / (25 * giga * 0.92)));
  REQUIRE(seconds(Collective::send_recv, free, pp) ==
          Approx(0.8 * 8.17e-6 + 14e-6 + bytes / (50 * giga * 0.92)));

  // A ring over all nodes leaves each leaf once: 8 groups, 800 / 8 = 100 GB/s, more than a card.
  const RankGroup dp{.name = "dp", .ranks = 8, .stride = 8};
  const Bottleneck ring = bottleneck(half, dp, Pattern::ring);
  REQUIRE(ring.name == "cards of a node");
  REQUIRE(ring.groups == 8);
  REQUIRE(ring.share == Approx(50 * giga));
  REQUIRE(seconds(Collective::all_gather, half, dp) == seconds(Collective::all_gather, free, dp));

  // Each of 64 with each: 32 x 32 parts leave a leaf, 8 x 56 a node: 800 x 448 / 1024 = 350 GB/s.
  const RankGroup ep{.name = "ep", .ranks = 64, .stride = 1};
  REQUIRE(bottleneck(half, ep, Pattern::pairs).share == Approx(350 * giga));
  // A part is S/64, 56 go far. (56 x 8) / 350 against (56 x 8) / 400, at 92 %.
  REQUIRE(seconds(Collective::all_to_all, half, ep) - seconds(Collective::all_to_all, free, ep) ==
          Approx(bytes / 64 * 448 / 0.92 / giga * (1.0 / 350 - 1.0 / 400)));
}

// Leaves of two nodes that send all up; two leaves a pod, whose uplinks carry a quarter:
// 2 x 800 / 4 = 400 GB/s.
TEST_CASE("a tapered fabric is as slow as its narrowest level") {
  const ClusterSpec cluster = joined_by(
      {.levels = {{"leaf", 2, 800 * giga}, {"pod", 2, 400 * giga}, {"spine"}}}, eights(8));
  // Between pods 32 GPUs share 400 GB/s.
  const Bottleneck far = bottleneck(cluster, {.ranks = 2, .stride = 32}, Pattern::chain);
  REQUIRE(far.name == "uplinks of pod 0");
  REQUIRE(far.share == Approx(12.5 * giga));
  // Between the leaves of a pod 16 GPUs share 800 GB/s: as much as their cards.
  const Bottleneck near = bottleneck(cluster, {.ranks = 2, .stride = 16}, Pattern::chain);
  REQUIRE(near.name == "cards of a node");
  REQUIRE(near.share == Approx(50 * giga));
  // Of two nodes each sends half of the buffer in either tree, all of it once: 32 groups again.
  REQUIRE(bottleneck(cluster, {.ranks = 2, .stride = 32}, Pattern::trees).share ==
          Approx(12.5 * giga));
  // Four nodes, one a leaf and two a pod, in the trees 0 - 2 - {1, 3} and 3 - 1 - {0, 2}: 0 - 2, 2
  // - 1 of one and 3 - 1, 1 - 2 of the other lie between pods, half of the buffer each way. Of a
  // node the cards carry as much: 16 groups, 400 / 16 = 25 GB/s.
  const Bottleneck trees = bottleneck(cluster, {.ranks = 4, .stride = 16}, Pattern::trees);
  REQUIRE(trees.name == "uplinks of pod 0");
  REQUIRE(trees.share == Approx(25 * giga));
}

TEST_CASE("rails that never meet cost what is sent to other rails a way inside the node") {
  const ClusterSpec free = eights(2);
  FabricSpec rails = leaves_and_spine(2, 1);
  rails.rails = Rails::only;
  const ClusterSpec only = joined_by(rails, free);

  // Each of 16 with each: of the 8 parts for the other node 7 are for other rails, and pass NVLink
  // first, which carries 0.95 x 20.6/25 x 450 GB/s.
  const RankGroup ep{.name = "ep", .ranks = 16, .stride = 1};
  const double bytes = static_cast<double>(large.count());
  REQUIRE(seconds(Collective::all_to_all, only, ep) - seconds(Collective::all_to_all, free, ep) ==
          Approx(bytes / 16 * 7 / (0.95 * 20.6 / 25 * 450 * giga)));
  // A ring per rail, and one GPU with its like on another node, stay on their rails.
  for (const std::int64_t stride : {1, 4, 8}) {
    const RankGroup dp{.name = "dp", .ranks = 16 / stride, .stride = stride};
    CAPTURE(stride);
    REQUIRE(seconds(Collective::all_reduce, only, dp) == seconds(Collective::all_reduce, free, dp));
  }
}

// GPU 0 of node 0, GPU 4 of node 1, GPU 0 of node 3: where NVLink is slower than a card, it bounds.
TEST_CASE("one GPU of each node on another rail than the one before is reached through its node") {
  ClusterSpec free = eights(6);
  free.intra_node_bandwidth = 40 * giga;
  FabricSpec rails = leaves_and_spine(6, 1);
  rails.rails = Rails::only;
  const ClusterSpec only = joined_by(rails, free);
  const RankGroup group{.name = "dp", .ranks = 4, .stride = 12};
  const CommunicationGroup placed = placement(only, group);
  REQUIRE(placed.ranks_per_node == 1);
  const double bytes = static_cast<double>(large.count());
  const double slow = 40 * giga * 20.6 / 25;
  REQUIRE(placed.inter_node_bandwidth * tuning::network_efficiency > slow);
  const auto sent = [&](const ClusterSpec& cluster) {
    return seconds(Collective::broadcast, cluster, group);
  };
  REQUIRE(sent(only) - sent(free) ==
          Approx(bytes / slow - bytes / (placed.inter_node_bandwidth * 0.92)));
}

// Without NVLink what changes rails does so above the first switches: 1:1 uplinks carry it, 2:1
// uplinks not.
TEST_CASE("rails of nodes on PCIe meet above the first switches, though nodes are neighbours") {
  ClusterSpec free = eights(2);
  free.intra_node = LinkKind::pcie;
  FabricSpec rails = leaves_and_spine(2, 4);
  rails.rails = Rails::optimized;
  const RankGroup ep{.name = "ep", .ranks = 16, .stride = 1};
  // 16 x 16 - 2 x 8 x 8 = 128 parts go to the other node, 7/8 of them up; a node sends 64.
  // Uplinks: 2 x 400 / 4 = 200 GB/s.
  const Bottleneck found = bottleneck(joined_by(rails, free), ep, Pattern::pairs);
  REQUIRE(found.name == "uplinks of leaf 0, all rails");
  REQUIRE(found.share == Approx(200 * giga / (128.0 * 7 / 8 / 64)));
}

// Leaves of four nodes, 4:1: uplinks of 400 GB/s. Two stages of four nodes, whose data-parallel
// rings stay below one leaf each.
TEST_CASE("a hole in the allocation makes rings cross leaves") {
  const RankGroup dp{.name = "dp", .ranks = 4, .stride = 8};
  FabricSpec fabric = leaves_and_spine(4, 4);
  const ClusterSpec whole = joined_by(fabric, eights(8));
  REQUIRE(bottleneck(whole, dp, Pattern::ring).name == "cards of a node");
  REQUIRE(bottleneck(whole, dp, Pattern::ring).share == Approx(50 * giga));
  // Node 1 is missing: stages on 0 2 3 | 4 and 5 6 7 | 8. Leaf 1 sends 4 -> 0 and 7 -> 8, eight
  // groups each: 400 / 16 = 25 GB/s.
  fabric.nodes = {0, 2, 3, 4, 5, 6, 7, 8};
  const ClusterSpec hole = joined_by(fabric, eights(8));
  const Bottleneck found = bottleneck(hole, dp, Pattern::ring);
  REQUIRE(found.name == "uplinks of leaf 1");
  REQUIRE(found.groups == 16);
  REQUIRE(found.share == Approx(25 * giga));
  // Rings: all that is sent takes twice as long; 14 us a hop stay.
  const double bytes = static_cast<double>(large.count());
  REQUIRE(seconds(Collective::all_gather, hole, dp) - seconds(Collective::all_gather, whole, dp) ==
          Approx(bytes * 3 / 4 / 0.92 / giga * (1.0 / 25 - 1.0 / 50)));
}

TEST_CASE("without switches nothing but cards is shared") {
  const Bottleneck cards = bottleneck(eights(8), {.ranks = 2, .stride = 32}, Pattern::chain);
  REQUIRE(cards.name == "cards of a node");
  REQUIRE(cards.share == 50 * giga);
}
