// What is sent beside a pass shares switches with what the pass sends, as computed by hand.
#include "cost_model/pipeline/contention.hpp"

#include "cost_model/network/topology.hpp"
#include "cost_model/pipeline/stage_time.hpp"
#include "tests/catch.hpp"
#include "tests/cost_model/network/fabrics.hpp"

using namespace zeroplan;
using tests::eights;
using tests::joined_by;
using tests::leaves_and_spine;

namespace {

constexpr RankGroup everyone{.name = "dp", .ranks = 64, .stride = 1};
constexpr RankGroup experts{.name = "ep", .ranks = 64, .stride = 1};
constexpr RankGroup stage_rings{.name = "dp", .ranks = 4, .stride = 8};
constexpr RankGroup stages{.name = "pp", .ranks = 2, .stride = 32};

UplinkDemand demand(const ClusterSpec& cluster,
                    const RankGroup& a,
                    Pattern of_a,
                    const RankGroup& b,
                    Pattern of_b) {
  return cluster.fabric->demand(sending(cluster, a, of_a).value(),
                                sending(cluster, b, of_b).value());
}

SentKinds one_kind(const ClusterSpec& cluster, bool waited, double forward, double backward) {
  SentKinds kinds;
  kinds.add({.who = sending(cluster, experts, Pattern::pairs).value(),
             .waited = waited,
             .seconds = {forward, backward}});
  return kinds;
}

}  // namespace

// Eight nodes below two leaves of four, whose uplinks carry 4 x 400 / 4 = 400 GB/s. A ring over all
// sends 400 GB/s around and so up each leaf: all of it. Each of 64 with each: 32 x 32 parts leave a
// leaf where 8 x 56 leave a node, which then sends at 400 x 448 / 1024 = 175 GB/s of its cards'
// 400; the uplinks are full again.
TEST_CASE("two dimensions on one tree ask twice for the uplinks that each of them fills") {
  const ClusterSpec tree = joined_by(leaves_and_spine(4, 4), eights(8));
  const UplinkDemand both = demand(tree, everyone, Pattern::ring, experts, Pattern::pairs);
  CHECK(both.part == Approx(2));
  CHECK(both.capacity == Approx(400 * giga));
  CHECK(both.name == "uplinks of leaf 0");
  CHECK(both.cards == Approx(1 + 175.0 / 400));
  CHECK(both.crowding() == Approx(2 - (1 + 175.0 / 400)));
  // In either order.
  CHECK(demand(tree, experts, Pattern::pairs, everyone, Pattern::ring).crowding() ==
        both.crowding());

  // 2:1: the ring fills half of 800 GB/s, the pairs, at 350 GB/s a node, all: 1.5, where the cards
  // are asked for 1.875 times what they have. That is as it was without switches.
  const ClusterSpec half = joined_by(leaves_and_spine(4, 2), eights(8));
  const UplinkDemand less = demand(half, everyone, Pattern::ring, experts, Pattern::pairs);
  CHECK(less.part == Approx(1.5));
  CHECK(less.cards == Approx(1 + 350.0 / 400));
  CHECK(less.crowding() == 0);
}

// Node 1 of nine is missing (tests/cost_model/network/fabric_test.cpp): stages on 0 2 3 | 4 and
// 5 6 7 | 8, uplinks of 400 GB/s. Rings send 4 -> 0 and 7 -> 8 out of leaf 1 and 3 -> 4, 8 -> 5
// into it, 16 groups at 25 GB/s: all of it. Of the pipeline's pairs 0 -> 5, 2 -> 6, 3 -> 7 come
// from leaf 0, 24 of them at 400 / 24 GB/s, which go down to leaf 1 and fill that.
TEST_CASE("a hole makes data and pipeline parallelism meet on an uplink") {
  FabricSpec fabric = leaves_and_spine(4, 4);
  fabric.nodes = {0, 2, 3, 4, 5, 6, 7, 8};
  const ClusterSpec hole = joined_by(fabric, eights(8));
  const UplinkDemand both = demand(hole, stage_rings, Pattern::ring, stages, Pattern::chain);
  CHECK(both.part == Approx(2));
  CHECK(both.name == "uplinks of leaf 1");
  CHECK(both.cards == Approx(8 * 25.0 / 400 + 8 * 400.0 / 24 / 400));
  CHECK(both.crowding() == Approx(1));

  // Without the hole rings stay below their leaves, and only the pairs climb.
  const ClusterSpec whole = joined_by(leaves_and_spine(4, 4), eights(8));
  const UplinkDemand apart = demand(whole, stage_rings, Pattern::ring, stages, Pattern::chain);
  CHECK(apart.part == Approx(1));
  CHECK(apart.crowding() == 0);
}

// One leaf, rails that never meet: a card carries its GPU's ring and its GPU's messages, both of
// which fill it. That is shared on every cluster, and no more so here.
TEST_CASE("cards that two dimensions share are as they are where no switches are known") {
  FabricSpec rails = leaves_and_spine(8, 1);
  rails.rails = Rails::only;
  const ClusterSpec only = joined_by(rails, eights(8));
  const UplinkDemand both = demand(only, stage_rings, Pattern::ring, stages, Pattern::chain);
  CHECK(both.cards == Approx(2));
  CHECK(both.part == 0);
  CHECK(both.crowding() == 0);
  // Two leaves whose uplinks carry all: no more than the cards are asked for.
  const ClusterSpec full = joined_by(leaves_and_spine(4, 1), eights(8));
  CHECK(demand(full, everyone, Pattern::ring, experts, Pattern::pairs).crowding() == 0);
  // Two leaves of every rail at 4:1, which the rails' uplinks together are named for.
  rails = leaves_and_spine(4, 4);
  rails.rails = Rails::only;
  const ClusterSpec narrow = joined_by(rails, eights(8));
  const UplinkDemand far = demand(narrow, everyone, Pattern::ring, stages, Pattern::chain);
  CHECK(far.part == Approx(2));
  CHECK(far.name == "uplinks of leaf 0, all rails");
}

TEST_CASE("nothing is sent between nodes where a group has one, or no switches are known") {
  const ClusterSpec tree = joined_by(leaves_and_spine(4, 4), eights(8));
  CHECK_FALSE(sending(tree, {.name = "tp", .ranks = 8, .stride = 1}, Pattern::ring));
  CHECK_FALSE(sending(eights(8), everyone, Pattern::ring));
}

// A pass of 10 s waits 3 s for experts, and has 20 s of gathers beside it: they share uplinks that
// each of them fills, of which the cards' part is not counted, and computing is slower by what it
// always is.
TEST_CASE(
    "a pass is longer by what it sends while others do, and what is hidden by what it sends") {
  ClusterSpec tree = joined_by(leaves_and_spine(4, 4), eights(8));
  const double slower = time_constants(tree.gpu).step.overlap_slowdown;
  const double crowded = 2 - (1 + 175.0 / 400);
  StagePasses passes{.once = {10, 10}, .between = one_kind(tree, true, 3, 3)};
  UpdateLoads loads{.beside = {20, 5}, .in_passes = true};
  const Sending gathers = sending(tree, everyone, Pattern::ring).value();
  loads.sent = {{gathers, During::forward, false, 20}, {gathers, During::backward, false, 5}};
  Directions added = added_part(loads, passes, tree);
  CHECK(10 * added.forward == Approx(20 - 10 + slower * 10 + crowded * 3));
  // Beside half of the pass, half of what it waits for.
  CHECK(10 * added.backward == Approx(slower * 5 + crowded * 1.5));

  // What runs beside computing itself takes but the links: 5 s beside 10 s have room enough.
  passes.between = one_kind(tree, false, 3, 3);
  added = added_part(loads, passes, tree);
  CHECK(10 * added.forward == Approx(20 + crowded * 3 - 10 + slower * 10));
  CHECK(10 * added.backward == Approx(slower * (5 + crowded * 1.5)));

  // Never worse than one after the other.
  passes.between = one_kind(tree, true, 20, 20);
  CHECK(10 * added_part(loads, passes, tree).backward == Approx(5));

  // Nothing of another kind of group, of another pass, or of a cluster without switches.
  passes.between = {};
  const Directions alone = added_part(loads, passes, tree);
  CHECK(10 * alone.forward == Approx(20 - 10 + slower * 10));
}

// Reduced once a step beside the last backward pass; half of it over the uplinks.
TEST_CASE("the last backward pass shares its links with the reductions beside it") {
  const ClusterSpec tree = joined_by(leaves_and_spine(4, 4), eights(8));
  const double slower = time_constants(tree.gpu).step.overlap_slowdown;
  const double crowded = 2 - (1 + 175.0 / 400);
  const StagePasses passes{.once = {10, 20}, .between = one_kind(tree, true, 1, 4)};
  UpdateLoads loads;
  loads.hidden = {{.seconds = 6}, {.seconds = 4}};
  loads.sent = {{sending(tree, everyone, Pattern::ring).value(), During::backward, true, 6}};
  const AtEnd exposed = exposed_at_end(loads, passes, tree);
  // 10 of 20 s: 4 s of experts share half of the time with what is on their uplinks 6 of 10 s.
  CHECK(exposed.reductions == Approx(slower * 10 + crowded * 4 * 0.5 * 0.6));
}
