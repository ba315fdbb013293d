#include "cost_model/network/rank_groups.hpp"

#include "cost_model/states/overheads.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

TEST_CASE("ranks are placed tp, cp, dp, pp from the innermost outwards") {
  const Problem p = problem(Runtime::megatron, "llama3-70b", {.dp = 4, .tp = 8, .pp = 2, .cp = 2});
  REQUIRE(rank_groups(p) == RankGroups{{.name = "tp", .ranks = 8, .stride = 1},
                                                   {.name = "cp", .ranks = 2, .stride = 8},
                                                   {.name = "dp", .ranks = 8, .stride = 8},
                                                   {.name = "pp", .ranks = 2, .stride = 64}});
}

TEST_CASE("experts have a grid of their own on the same ranks") {
  const Problem p =
      problem(Runtime::megatron, "mixtral-8x7b", {.dp = 4, .tp = 4, .ep = 4, .etp = 2});
  REQUIRE(rank_groups(p) == RankGroups{{.name = "tp", .ranks = 4, .stride = 1},
                                                   {.name = "dp", .ranks = 4, .stride = 4},
                                                   {.name = "ep", .ranks = 4, .stride = 2},
                                                   {.name = "expert-dp", .ranks = 2, .stride = 8}});
}

TEST_CASE("under HSDP neighbours shard and distant ranks replicate") {
  const Problem p =
      problem(Runtime::fsdp2, "llama3-70b", {.dp = 32, .hsdp = 8, .zero = ZeroStage::parameters});
  REQUIRE(rank_groups(p) == RankGroups{{.name = "dp", .ranks = 32, .stride = 1},
                                                   {.name = "shard", .ranks = 8, .stride = 1},
                                                   {.name = "replica", .ranks = 4, .stride = 8}});
}

TEST_CASE("where each replica is one rank of data parallelism its context ranks shard") {
  const Problem p = problem(Runtime::fsdp2, "llama3-70b",
                            {.dp = 4, .cp = 2, .hsdp = 1, .zero = ZeroStage::parameters});
  REQUIRE(rank_groups(p) == RankGroups{{.name = "cp", .ranks = 2, .stride = 1},
                                                   {.name = "dp", .ranks = 8, .stride = 1},
                                                   {.name = "shard", .ranks = 2, .stride = 1},
                                                   {.name = "replica", .ranks = 4, .stride = 2}});
}

TEST_CASE("a rank alone communicates with nobody") {
  REQUIRE(rank_groups(problem(Runtime::ddp, "llama3-70b", {})).empty());
}

// Memory counts communicators of the same groups.
TEST_CASE("traffic and communicators are of the same groups") {
  for (const char* model : {"llama3-70b", "mixtral-8x7b"}) {
    for (const std::int64_t tp : {1, 4, 16}) {
      for (const std::int64_t pp : {1, 4}) {
        const std::int64_t ep = tp > 1 ? tp / 2 : 1;
        Problem p = problem(Runtime::megatron, model, {.dp = 4, .tp = tp, .pp = pp, .cp = 2});
        if (p.model.moe) p.layout.ep = ep;
        const auto groups = rank_groups(p);
        const auto communicators = process_groups(p);
        REQUIRE(groups.size() == communicators.size());
        for (std::size_t i = 0; i < groups.size(); ++i) {
          CAPTURE(model, tp, pp, groups[i].name);
          REQUIRE(groups[i].name == communicators[i].name);
          REQUIRE(groups[i].ranks == communicators[i].ranks);
          REQUIRE((groups[i].ranks * groups[i].stride > p.cluster.gpus_per_node) ==
                  communicators[i].spans_nodes);
        }
      }
    }
  }
}
