#include "cost_model/network/volume.hpp"

#include <algorithm>
#include <random>

#include "cost_model/legality/legality.hpp"
#include "tests/catch.hpp"
#include "tests/cost_model/network/loads.hpp"
#include "tests/draws.hpp"

using namespace zeroplan;
using namespace zeroplan::tests;

TEST_CASE("each chunk of a pipeline sends the residual on and its gradient back") {
  Problem p = problem(Runtime::megatron, "gpt3-175b", {.tp = 8, .pp = 4, .micro_batch = 2});
  const std::int64_t all = std::int64_t{4} * 2 * 2 * 4096 * 12288;  // micro-batches x 2 b s h bytes
  REQUIRE(sent_in(loads_of(p, 0), "pp") == all);
  REQUIRE(sent_in(loads_of(p, 1), "pp") == 2 * all);
  REQUIRE(sent_in(loads_of(p, 3), "pp") == all);

  SECTION("v times as often with v chunks a rank") {
    p.layout.vpp = 2;
    p.layout.schedule = Schedule::interleaved;
    REQUIRE(sent_in(loads_of(p, 0), "pp") == 3 * all);
    REQUIRE(sent_in(loads_of(p, 1), "pp") == 4 * all);
  }
  SECTION("each rank its rows under sequence parallelism") {
    p.layout.sequence_parallel = true;
    REQUIRE(sent_in(loads_of(p, 1), "pp") == 2 * all / 8);
  }
}

TEST_CASE("a tied embedding on two stages is summed between them") {
  const Problem p = problem(Runtime::megatron, "gpt2-xl", {.dp = 2, .pp = 4});
  const auto is_tied = [](const CollectiveLoad& l) { return l.group.name == "embedding"; };
  for (const std::size_t stage : {0U, 3U}) {
    const auto loads = loads_of(p, stage);
    const auto tied = std::ranges::find_if(loads, is_tied);
    REQUIRE(tied != loads.end());
    REQUIRE(tied->group == RankGroup{"embedding", 2, 6, 2});
    REQUIRE(tied->payload == Bytes{4 * 50304 * 1600});
  }
  REQUIRE(std::ranges::none_of(loads_of(p, 1), is_tied));
}

TEST_CASE("random legal layouts: every load is sent, in a group that the layout has") {
  std::mt19937 random(5);
  const auto pick = [&](std::initializer_list<std::int64_t> list) {
    return list.begin()[std::uniform_int_distribution<std::size_t>(0, list.size() - 1)(random)];
  };
  int legal = 0;
  for (int i = 0; i < tests::draws(3000); ++i) {
    const Layout layout{.dp = pick({1, 2, 4, 8}),
                        .tp = pick({1, 2, 4}),
                        .pp = pick({1, 1, 2, 4}),
                        .cp = pick({1, 1, 2}),
                        .ep = pick({1, 1, 2, 4}),
                        .hsdp = pick({0, 0, 2}),
                        .micro_batch = pick({1, 2}),
                        .zero = static_cast<ZeroStage>(pick({0, 1, 2, 3})),
                        .sequence_parallel = pick({0, 1}) == 1,
                        .recompute = static_cast<Recompute>(pick({0, 1, 2}))};
    const char* model = pick({0, 1}) == 0 ? "llama3-8b" : "mixtral-8x7b";
    const Problem p = accumulating(
        problem(static_cast<Runtime>(pick({0, 1, 2, 3, 4, 5, 6})), model, layout), pick({1, 3}));
    if (first_violation(p)) continue;
    ++legal;
    const auto groups = rank_groups(p);
    const auto all_stages = stages(p);
    for (std::size_t stage = 0; stage < all_stages.size(); ++stage) {
      const auto loads = loads_of(p, stage);
      REQUIRE(loads.empty() == (world_size(layout) == 1));
      for (const CollectiveLoad& load : loads) {
        CAPTURE(i, load.group.name);
        REQUIRE(load.calls > 0);
        REQUIRE(sent_bytes_per_step(load) > Bytes{});
        REQUIRE(std::ranges::find(groups, load.group) != groups.end());
      }
    }
  }
  REQUIRE(legal > tests::draws(100));
}

TEST_CASE("where ZB-V comes back, a rank keeps what it would send") {
  const Problem p =
      problem(Runtime::fsdp2, "llama3-70b",
              {.pp = 4, .vpp = 2, .zero = ZeroStage::parameters, .schedule = Schedule::zb_v});
  const std::int64_t all = std::int64_t{4} * 2 * 4096 * 8192;  // micro-batches x 2 T h bytes
  REQUIRE(sent_in(loads_of(p, 0), "pp") == 2 * all);           // with the first and the last chunk
  REQUIRE(sent_in(loads_of(p, 1), "pp") == 4 * all);
  REQUIRE(sent_in(loads_of(p, 3), "pp") == 2 * all);
}
