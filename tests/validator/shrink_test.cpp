// A plan is made small by the rule that is stated, and stays a plan.
#include "validator/shrink.hpp"

#include "cost_model/legality/legality.hpp"
#include "tests/catch.hpp"
#include "tests/validator/tiny.hpp"
#include "validator/run.hpp"

using namespace zeroplan;
using namespace zeroplan::engine;

TEST_CASE("what has room is run as it is") {
  const Problem p = tests::tiny_problem(tests::tiny_llama(), {.dp = 2, .tp = 2, .pp = 2}, 2);
  REQUIRE(for_engine(p).changes.empty());
  REQUIRE(shrunk(p, {}).changes.empty());
}

TEST_CASE("what has not becomes smaller, and stays legal") {
  for (const std::string_view name : {"llama3-8b", "llama3-70b", "gpt3-175b", "qwen2.5-72b"}) {
    for (const std::int64_t ranks : {1, 2, 3, 8}) {
      Layout layout{.dp = 8, .tp = 8, .pp = 4, .zero = ZeroStage::optimizer};
      layout.sequence_parallel = true;
      layout.recompute = Recompute::selective;
      Problem plan = tests::problem(Runtime::megatron, name, layout);
      plan.training.sequence_length = 2048;
      plan.training.global_batch = 8 * 64;
      const Shrunk full = for_engine(plan);
      CAPTURE(name, ranks, full.changes);
      REQUIRE_FALSE(first_violation(full.problem));
      const Room room{.ranks = ranks};
      const Shrunk small = shrunk(full.problem, room);
      CAPTURE(small.changes);
      const Problem& p = small.problem;
      REQUIRE_FALSE(first_violation(p));
      REQUIRE(world_size(p.layout) <= ranks);
      REQUIRE(p.model.layers == 2 * p.layout.pp);
      REQUIRE(micro_batches(p) == 2 * p.layout.pp);
      REQUIRE(p.layout.zero == layout.zero);
      REQUIRE(p.model.hidden_size < plan.model.hidden_size);
    }
  }
}

TEST_CASE("tensor parallelism is given up where two ranks cannot share what five did") {
  Layout layout{.dp = 2, .tp = 5, .pp = 2, .zero = ZeroStage::optimizer};
  layout.sequence_parallel = true;
  Problem plan = tests::problem(Runtime::megatron, "gpt2-xl", layout);
  plan.training.sequence_length = 1000;
  const Shrunk full = for_engine(plan);
  REQUIRE_FALSE(first_violation(full.problem));
  REQUIRE(full.problem.model.tied_embeddings);
  REQUIRE(full.problem.layout.sequence_parallel);
  const Problem small = shrunk(full.problem, {.ranks = 8}).problem;
  REQUIRE_FALSE(first_violation(small));
  REQUIRE(small.layout.tp == 1);
  REQUIRE_FALSE(small.layout.sequence_parallel);
}

TEST_CASE("tokens stay what ranks of sequence parallelism can share") {
  Layout layout{.dp = 1, .tp = 3, .pp = 1};
  layout.sequence_parallel = true;
  Problem plan = tests::problem(Runtime::zeroplan, "llama3-8b", layout);
  plan.model.attention.heads = plan.model.attention.kv_heads = 6;
  plan.model.mlp.intermediate_size = 12'288;
  plan.training.sequence_length = 999;
  REQUIRE_FALSE(first_violation(plan));
  const Problem small = shrunk(plan, {.ranks = 2}).problem;
  REQUIRE_FALSE(first_violation(small));
  REQUIRE(small.layout.tp == 2);
  REQUIRE(small.training.sequence_length % 2 == 0);
}

TEST_CASE("what is run has room under every ZeRO stage") {
  Problem p =
      tests::problem(Runtime::zeroplan, "llama3-8b", {.dp = 4, .zero = ZeroStage::parameters});
  p.training.sequence_length = 4096;
  p.training.global_batch = 4;
  const Room room{.ranks = 4, .memory = 11_GiB, .step_flops = 1e18};
  Problem small = shrunk(p, room).problem;
  for (std::size_t zero = 0; zero < names<ZeroStage>().size(); ++zero) {
    small.layout.zero = static_cast<ZeroStage>(zero);
    CAPTURE(zero);
    REQUIRE(4 * count_rank(small, {}).peak.live.allocated() <= room.memory);
  }
}
