#include "cost_model/network/collective_time.hpp"

#include <limits>
#include <random>
#include <vector>

#include "tests/catch.hpp"

using namespace zeroplan;

namespace {

constexpr double microsecond = 1e-6;

CommunicationGroup h100(std::int64_t ranks, std::int64_t ranks_per_node) {
  return {.ranks = ranks,
          .ranks_per_node = ranks_per_node,
          .groups_sharing_network = ranks > ranks_per_node ? 1 : 0,
          .intra_node_bandwidth = 450 * giga,
          .inter_node_bandwidth = ranks > ranks_per_node ? 400 * giga : 0,
          .compute_capability = 90};
}

CommunicationGroup random_group(std::mt19937& random) {
  const auto pick = [&](std::vector<std::int64_t> of) {
    return of[std::uniform_int_distribution<std::size_t>(0, of.size() - 1)(random)];
  };
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution(low, high)(random);
  };
  const std::int64_t local = pick({1, 2, 4, 8, 16});
  const std::int64_t nodes = pick({1, 2, 3, 4, 32});
  return {.ranks = local * nodes,
          .ranks_per_node = local,
          .groups_sharing_network = nodes > 1 ? 1 : 0,
          .intra_node_bandwidth = uniform(10, 900) * giga,
          .inter_node_bandwidth = uniform(5, 400) * giga,
          .intra_node = static_cast<LinkKind>(pick({0, 1, 2})),
          .compute_capability = pick({0, 70, 80, 90, 100})};
}

}  // namespace

TEST_CASE("a rank alone and an empty payload take no time") {
  REQUIRE(collective_time(Collective::all_reduce, h100(1, 1), 1_GiB).seconds == 0);
  REQUIRE(collective_time(Collective::all_reduce, h100(8, 8), Bytes{}).seconds == 0);
}

TEST_CASE("time never falls with bytes and never rises with bandwidth") {
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const CommunicationGroup group = random_group(random);
    CommunicationGroup faster_inside = group;
    faster_inside.intra_node_bandwidth *= 1.5;
    CommunicationGroup faster_network = group;
    faster_network.inter_node_bandwidth *= 1.5;
    for (std::size_t c = 0; c < names<Collective>().size(); ++c) {
      const auto collective = static_cast<Collective>(c);
      double before = 0;
      for (Bytes payload{512}; payload < 16_GiB; payload += payload) {
        const double now = collective_time(collective, group, payload).seconds;
        CAPTURE(i, name_of(collective), payload.count());
        REQUIRE(now >= before);
        REQUIRE(collective_time(collective, faster_inside, payload).seconds <= now);
        REQUIRE(collective_time(collective, faster_network, payload).seconds <= now);
        before = now;
      }
    }
  }
}

TEST_CASE("given an NVSwitch that adds, when more than four GPUs all-reduce, then it is used") {
  const auto algorithm = [](std::int64_t ranks, std::int64_t compute_capability) {
    CommunicationGroup group = h100(ranks, ranks);
    group.compute_capability = compute_capability;
    return collective_time(Collective::all_reduce, group, 1_GiB).algorithm;
  };
  REQUIRE(algorithm(8, 90) == Algorithm::nvls);
  REQUIRE(algorithm(4, 90) == Algorithm::ring);
  REQUIRE(algorithm(8, 80) == Algorithm::ring);
}

TEST_CASE("all-gather and reduce-scatter keep to the ring on NVSwitch") {
  for (const Collective collective : {Collective::all_gather, Collective::reduce_scatter}) {
    REQUIRE(collective_time(collective, h100(8, 8), 1_GiB).algorithm == Algorithm::ring);
  }
}

TEST_CASE("given many nodes, when the payload is small, then a tree beats the ring") {
  REQUIRE(collective_time(Collective::all_reduce, h100(256, 8), 1_MiB).algorithm ==
          Algorithm::tree);
  CommunicationGroup rails = h100(32, 1);
  rails.inter_node_bandwidth = 50 * giga;
  REQUIRE(collective_time(Collective::all_gather, rails, 1_MiB).algorithm == Algorithm::pat);
}

TEST_CASE("two nodes with NVLS all-reduce faster than a ring over their cards could") {
  const CollectiveTime time = collective_time(Collective::all_reduce, h100(16, 8), 1_GiB);
  REQUIRE(time.algorithm == Algorithm::hierarchical);
  const Bytes sent = sent_bytes_per_rank(Collective::all_reduce, 16, 1_GiB);
  REQUIRE(time.seconds < static_cast<double>(sent.count()) / (400 * giga));
}

// Galvatron's cluster: one pair over two nodes gets 8 GB/s while 8 pairs share what one ring of all
// 16 ranks uses at 45 (tests/reference/collectives.jsonl).
TEST_CASE("groups that share a node's cards are slower by nearly their number") {
  CommunicationGroup alone = h100(2, 1);
  CommunicationGroup shared = alone;
  shared.inter_node_bandwidth /= 8;
  const auto seconds = [](const CommunicationGroup& group) {
    return collective_time(Collective::all_reduce, group, 4_GiB).seconds;
  };
  const double slower = seconds(shared) / seconds(alone);
  REQUIRE(slower < 8);
  REQUIRE(slower > 6);  // what a rank copies to itself needs no card
}

TEST_CASE("a send to another node takes as long as the group's share of the cards") {
  CommunicationGroup stages = h100(4, 1);
  stages.inter_node_bandwidth = 50 * giga;
  const double seconds = collective_time(Collective::send_recv, stages, 1_GiB).seconds;
  REQUIRE(seconds == Approx(gibi / (0.92 * 50 * giga)).epsilon(0.01));
}

TEST_CASE("a broadcast of a large message takes as long as a send") {
  const auto seconds = [](Collective collective) {
    return collective_time(collective, h100(8, 8), 4_GiB).seconds;
  };
  REQUIRE(seconds(Collective::broadcast) == Approx(seconds(Collective::send_recv)).epsilon(0.1));
}

// NCCL issue 1639: 8 x RTX 5090 on PCIe 5 all-reduce 8 GiB at a bus bandwidth of 28 GB/s.
TEST_CASE("a ring over PCIe reaches about half of its rate") {
  const CommunicationGroup group{.ranks = 8,
                                 .ranks_per_node = 8,
                                 .intra_node_bandwidth = 63 * giga,
                                 .intra_node = LinkKind::pcie,
                                 .compute_capability = 120};
  const CollectiveTime time = collective_time(Collective::all_reduce, group, 8_GiB);
  const Bytes sent = sent_bytes_per_rank(Collective::all_reduce, 8, 8_GiB);
  REQUIRE(time.algorithm == Algorithm::ring);
  REQUIRE(static_cast<double>(sent.count()) / time.seconds == Approx(28 * giga).epsilon(0.1));
}

TEST_CASE("nodes that no network joins never finish") {
  CommunicationGroup group = h100(16, 8);
  group.inter_node_bandwidth = 0;
  REQUIRE(collective_time(Collective::all_reduce, group, 1_MiB).seconds ==
          std::numeric_limits<double>::infinity());
}

// Megatron-Core MoE report, Table 7: NCCL dispatch of 4,096 tokens x top-8 x 7,168 in bf16 over
// H100 nodes of 8 x 400 Gb/s.
TEST_CASE("all-to-all over nodes takes the published time") {
  const Bytes tokens{std::int64_t{4096} * 8 * 7168 * 2};
  const auto microseconds = [&](std::int64_t ranks) {
    return collective_time(Collective::all_to_all, h100(ranks, 8), tokens).seconds / microsecond;
  };
  REQUIRE(microseconds(8) == Approx(1265).epsilon(0.04));
  REQUIRE(microseconds(16) == Approx(5774).epsilon(0.01));
  REQUIRE(microseconds(32) == Approx(8059).epsilon(0.01));
  REQUIRE(microseconds(64) == Approx(9164).epsilon(0.01));
}

TEST_CASE("a measured table overrides the model") {
  const std::vector<MeasuredPoint> table{{1_MiB, 20 * microsecond}, {4_MiB, 80 * microsecond}};
  const auto microseconds = [&](Bytes payload) {
    const CollectiveTime time = collective_time(Collective::all_gather, h100(8, 8), payload, table);
    REQUIRE(time.algorithm == Algorithm::measured);
    return time.seconds / microsecond;
  };
  REQUIRE(microseconds(1_MiB) == Approx(20));
  REQUIRE(microseconds(2_MiB) == Approx(40));  // half way in log bytes: half way in log time
  REQUIRE(microseconds(4_MiB) == Approx(80));
  REQUIRE(microseconds(Bytes{512}) == Approx(20));  // latency
  REQUIRE(microseconds(8_MiB) == Approx(160));      // the last bandwidth
}

TEST_CASE("a cluster's own table is asked for groups that stand as the measured ones did") {
  ClusterSpec cluster{.gpus = 16,
                      .gpus_per_node = 8,
                      .intra_node_bandwidth = 450 * giga,
                      .inter_node_bandwidth = 400 * giga,
                      .network_cards = 8};
  cluster.gpu.compute_capability = 90;
  const auto time = [&](Collective collective, const RankGroup& group) {
    return collective_time(collective, cluster, group, 2_MiB);
  };
  const RankGroup node{.name = "tp", .ranks = 8, .stride = 1};
  const CollectiveTime by_formula = time(Collective::all_gather, node);
  REQUIRE(by_formula.algorithm != Algorithm::measured);
  cluster.measured = {{.collective = Collective::all_gather,
                       .ranks = 8,
                       .ranks_per_node = 8,
                       .points = {{1_MiB, 20 * microsecond}, {4_MiB, 80 * microsecond}}}};
  REQUIRE(time(Collective::all_gather, node).seconds == Approx(40 * microsecond));
  REQUIRE(time(Collective::all_gather, node).algorithm == Algorithm::measured);
  // Another collective, another size and another place are the formulas'.
  REQUIRE(time(Collective::reduce_scatter, node).algorithm != Algorithm::measured);
  REQUIRE(time(Collective::all_gather, {.name = "tp", .ranks = 4, .stride = 1}).algorithm !=
          Algorithm::measured);
  REQUIRE(time(Collective::all_gather, {.name = "dp", .ranks = 8, .stride = 2}).algorithm !=
          Algorithm::measured);
}
