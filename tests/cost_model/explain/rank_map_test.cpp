#include "cost_model/explain/rank_map.hpp"

#include <functional>
#include <map>
#include <random>

#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

using Place = std::vector<std::int64_t>;

// A rank's place in all dimensions but the group's own.
Place others(const RankPlace& r, std::string_view group, const Layout& l) {
  if (group == "tp") return {r.cp, r.dp, r.pp};
  if (group == "cp") return {r.tp, r.dp, r.pp};
  if (group == "dp") return {r.tp, r.pp};  // counts context-parallel ranks
  if (group == "pp") return {r.tp, r.cp, r.dp};
  if (group == "ep") return {r.etp, r.rank / (l.etp * l.ep), r.pp};
  return {r.etp, r.ep, r.pp};  // expert-dp
}

}  // namespace

TEST_CASE("ranks that differ in one dimension alone are its group") {
  std::mt19937 random(31);
  tests::Draw draw(random);
  for (int layouts = 0; layouts < tests::draws(200);) {
    const std::optional<Problem> p = draw.problem();
    if (!p || p->layout.hsdp > 0) continue;
    ++layouts;
    const std::int64_t ranks = p->layout.tp * p->layout.cp * p->layout.dp * p->layout.pp;
    for (const GroupPlacement& placed : group_placements(*p)) {
      const RankGroup& group = placed.group;
      CAPTURE(group.name, group.ranks, group.stride, ranks);
      std::map<Place, std::vector<std::int64_t>> members;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        members[others(place_of(*p, rank), group.name, p->layout)].push_back(rank);
      }
      for (const auto& [place, list] : members) {
        REQUIRE(std::ssize(list) == group.ranks);
        for (std::size_t i = 1; i < list.size(); ++i) {
          REQUIRE(list[i] - list[i - 1] == group.stride);
        }
      }
    }
  }
}

TEST_CASE("node by node, and what leaves one is said") {
  const Problem inside = problem(Runtime::megatron, "llama3-70b", {.dp = 2, .tp = 8, .pp = 4});
  const RankPlace place = place_of(inside, 27);
  CHECK(place.node == 3);
  CHECK(place.gpu == 3);
  CHECK(place.tp == 3);
  CHECK(place.dp == 1);
  CHECK(place.pp == 1);
  CHECK(far_groups(inside).empty());
  const std::vector<GroupPlacement> groups = group_placements(inside);
  REQUIRE(groups.size() == 3);
  CHECK(groups[0].link == "nvlink");
  CHECK(groups[1].link == "network");
  CHECK(groups[1].nodes == 2);

  const Problem outside = problem(Runtime::megatron, "llama3-70b", {.dp = 1, .tp = 16, .pp = 4});
  REQUIRE(far_groups(outside).size() == 1);
  CHECK(far_groups(outside)[0].starts_with("tp 16 stands on 2 nodes"));
}
