// What holds of any fabric.
#include <algorithm>
#include <random>

#include "cost_model/network/collective_time.hpp"
#include "cost_model/network/topology.hpp"
#include "tests/catch.hpp"
#include "tests/cost_model/network/fabrics.hpp"
#include "tests/draws.hpp"

using namespace zeroplan;

namespace {

class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  std::int64_t from(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution(low, high)(random_);
  }

  // One to three levels, `ratio` : 1 or up to that.
  FabricSpec fabric(double node, double ratio, bool any_less) {
    FabricSpec spec;
    double below = node;
    for (std::int64_t level = from(0, 2); level > 0; --level) {
      const std::int64_t joins = from(1, 4);
      const double of_this =
          any_less ? 1 + static_cast<double>(from(0, 100)) / 100 * (ratio - 1) : ratio;
      below *= static_cast<double>(joins) / of_this;
      spec.levels.push_back({"level " + std::to_string(level), joins, below});
    }
    spec.levels.push_back({"spine"});
    return spec;
  }

  // Some of the first places, in any order.
  std::vector<std::int64_t> places(std::int64_t nodes) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(nodes + from(0, 8)));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    std::shuffle(all.begin(), all.end(), random_);
    all.resize(static_cast<std::size_t>(nodes));
    if (from(0, 1) == 0) std::ranges::sort(all);
    return all;
  }

  // A layout on a cluster of whole nodes.
  Problem problem() {
    Problem p;
    p.layout = {.dp = from(1, 12), .tp = 1 << from(0, 4), .pp = from(1, 4), .cp = from(1, 3)};
    p.cluster.gpus = world_size(p.layout);
    p.cluster.gpus_per_node = 1 << from(0, 4);
    p.cluster.network_cards = p.cluster.gpus_per_node;
    p.cluster.intra_node_bandwidth = static_cast<double>(from(10, 900)) * giga;
    p.cluster.inter_node_bandwidth = static_cast<double>(from(5, 400)) * giga;
    p.cluster.gpu.compute_capability = 90;
    return p;
  }

 private:
  std::mt19937 random_;
};

constexpr std::array all_collectives{Collective::all_reduce,     Collective::all_gather,
                                     Collective::reduce_scatter, Collective::all_to_all,
                                     Collective::broadcast,      Collective::send_recv};

constexpr Bytes payload{std::int64_t{1} << 30};

// Flows of one group from a switch to what is not below it, rank by rank.
double crossings(const RankGroup& group,
                 Pattern pattern,
                 const ClusterSpec& cluster,
                 std::span<const std::int64_t> places,
                 std::int64_t below,
                 std::int64_t number) {
  double count = 0;
  const auto inside = [&](std::int64_t rank) {
    return places[static_cast<std::size_t>(rank / cluster.gpus_per_node)] / below == number;
  };
  for (std::int64_t first = 0; first + group.span() <= cluster.gpus; first += group.span()) {
    for (std::int64_t begin = first; begin < first + group.neighbours(); ++begin) {
      const auto rank = [&](std::int64_t i) { return begin + i % group.ranks * group.stride; };
      for (std::int64_t i = 0; i < group.ranks; ++i) {
        if (pattern == Pattern::ring) count += inside(rank(i)) && !inside(rank(i + 1));
        if (pattern != Pattern::pairs) continue;
        for (std::int64_t j = 0; j < group.ranks; ++j) {
          count += inside(rank(i)) && !inside(rank(j));
        }
      }
    }
  }
  return count;
}

}  // namespace

TEST_CASE("where no uplink carries less than the cards below it, the answer is the division") {
  Draw draw(1);
  int compared = 0;
  while (compared < 300) {
    const Problem p = draw.problem();
    if (p.cluster.gpus % p.cluster.gpus_per_node != 0) continue;
    FabricSpec fabric = draw.fabric(p.cluster.inter_node_bandwidth, 1, false);
    const bool rails = fabric.levels.size() > 1 && p.cluster.gpus_per_node > 1 && draw.from(0, 1);
    if (rails) fabric.rails = draw.from(0, 1) ? Rails::optimized : Rails::only;
    const ClusterSpec joined = tests::joined_by(fabric, p.cluster);
    for (const RankGroup& group : rank_groups(p)) {
      if (!is_symmetric(p.cluster, group) || placement(p.cluster, group).inter_node_bandwidth == 0)
        continue;
      for (const Collective collective : all_collectives) {
        if (rails && collective == Collective::all_to_all) continue;  // passes NVLink twice
        const CollectiveTime divided = collective_time(collective, p.cluster, group, payload);
        const CollectiveTime on_fabric = collective_time(collective, joined, group, payload);
        CAPTURE(group.name, group.ranks, group.stride, name_of(collective));
        REQUIRE(std::abs(on_fabric.seconds / divided.seconds - 1) < 1e-12);
      }
      ++compared;
    }
  }
}

TEST_CASE("more capacity is never slower, and a fabric never faster than none") {
  Draw draw(2);
  int slower = 0;
  for (int i = 0; i < tests::draws(600); ++i) {
    const Problem p = draw.problem();
    FabricSpec less = draw.fabric(p.cluster.inter_node_bandwidth, 8, true);
    less.nodes = draw.places(ceil_div(p.cluster.gpus, p.cluster.gpus_per_node));
    FabricSpec more = less;
    for (FabricLevel& level : more.levels) level.uplink *= draw.from(0, 1) ? 2 : 1;
    for (const RankGroup& group : rank_groups(p)) {
      for (const Collective collective : all_collectives) {
        const auto seconds = [&](const ClusterSpec& cluster) {
          return collective_time(collective, cluster, group, payload).seconds;
        };
        const double with_less = seconds(tests::joined_by(less, p.cluster));
        const double with_more = seconds(tests::joined_by(more, p.cluster));
        CAPTURE(group.name, group.ranks, group.stride, name_of(collective));
        REQUIRE(with_more <= with_less);
        REQUIRE(seconds(p.cluster) <= with_more * (1 + 1e-12));
        slower += with_less > seconds(p.cluster) * 1.1;
      }
    }
  }
  REQUIRE(slower > tests::draws(500));
}

TEST_CASE("an uplink carries what goes from ranks below its switch to others, counted one by one") {
  Draw draw(3);
  int crossed = 0;
  for (int i = 0; i < tests::draws(400); ++i) {
    const Problem p = draw.problem();
    const std::int64_t nodes = ceil_div(p.cluster.gpus, p.cluster.gpus_per_node);
    const FabricSpec fabric = draw.fabric(p.cluster.inter_node_bandwidth, 1, false);
    const std::vector<std::int64_t> places = draw.places(nodes);
    const SwitchGraph switches(fabric, places);
    for (const RankGroup& group : rank_groups(p)) {
      for (const Pattern pattern : {Pattern::ring, Pattern::pairs}) {
        const std::int64_t local = placement(p.cluster, group).ranks_per_node;
        if (local == group.ranks) continue;
        const UplinkLoads loads = flow_loads(switches, {.group = group,
                                                        .pattern = pattern,
                                                        .gpus = p.cluster.gpus,
                                                        .gpus_per_node = p.cluster.gpus_per_node,
                                                        .ranks_per_node = local});
        const double unit =
            pattern == Pattern::pairs ? static_cast<double>(local * (group.ranks - local)) : 1;
        for (std::size_t v = 0; v < switches.size(); ++v) {
          if (switches.is_top(v)) continue;
          std::int64_t below = 1;
          for (std::size_t l = 0; l <= switches.at(v).level; ++l) below *= fabric.levels[l].joins;
          const double expected =
              crossings(group, pattern, p.cluster, places, below, switches.at(v).number);
          CAPTURE(group.ranks, group.stride, below, switches.at(v).number, int(pattern));
          REQUIRE(loads.up[v] * unit == Approx(expected));
          REQUIRE(loads.down[v] == Approx(loads.up[v]));
          crossed += expected > 0;
        }
      }
    }
  }
  REQUIRE(crossed > tests::draws(1000));
}

// Each node below a switch of its own: what that one carries is what the node sends.
TEST_CASE("no node of trees and of PAT sends more than its cards are taken to") {
  for (std::int64_t nodes = 2; nodes <= 70; ++nodes) {
    const SwitchGraph switches({.levels = {{"leaf", 1, 1}, {"spine"}}},
                               tests::joined_by({}, tests::eights(nodes)).fabric->places(nodes));
    const RankGroup group{.ranks = nodes, .stride = 8};
    const auto loads = [&](Pattern pattern) {
      return flow_loads(switches, {.group = group, .pattern = pattern, .gpus = 8 * nodes});
    };
    const UplinkLoads trees = loads(Pattern::trees), pat = loads(Pattern::pat);
    double all = 0;
    CAPTURE(nodes);
    for (std::int64_t node = 0; node < nodes; ++node) {
      const auto v = switches.leaf(node);
      REQUIRE(trees.up[v] <= 8 + 1e-9);
      REQUIRE(trees.down[v] == Approx(trees.up[v]));
      REQUIRE(pat.up[v] == Approx(8));
      all += trees.up[v];
    }
    // Two trees of n - 1 edges, both ways; half of the buffer is a quarter of what a node inside
    // sends.
    REQUIRE(all == Approx(8 * 4 * static_cast<double>(nodes - 1) / (nodes == 2 ? 2 : 4)));
  }
}
