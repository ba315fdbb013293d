#include "cost_model/program/early_walk.hpp"

#include <algorithm>
#include <map>

#include "cost_model/program/play.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/remember/evaluator.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

Problem interleaved(std::int64_t pp, std::int64_t micro_batches) {
  Problem p = problem(Runtime::megatron, "llama3-8b",
                      {.pp = pp, .vpp = 2, .schedule = Schedule::interleaved});
  p.training.global_batch = micro_batches;
  return p;
}

// What is alive when pass `number` of a rank begins to compute, by name.
std::map<std::string, int> alive_in(const Problem& p, std::size_t rank, std::int32_t number) {
  const Evaluator evaluator(p);
  const StageProgram program = evaluator.stage_program(p, stages(p)[rank]);
  std::map<std::string, int> alive;
  for (const Played& event :
       played_events(program, representative_passes(p, static_cast<std::int64_t>(rank)))) {
    const bool begins = event.pass == number && event.block >= 0;
    if (begins || event.pass > number) break;
    alive[std::string(event.tensor.name)] += event.allocates ? 1 : -1;
  }
  return alive;
}

}  // namespace

// By reading Megatron-LM @d98e8a64dd core/pipeline_parallel/schedules.py; whole stages are compared
// with its allocations in tests/reference/traced/megatron.jsonl.
TEST_CASE("an interleaved rank has what its next pass reads before the pass ahead goes back") {
  // Given the last of 2 ranks, which warms up with 2 passes: f0 f1 f0' b0' f1' b1' f2 b0 ...
  const Problem p = interleaved(2, 4);
  REQUIRE(alive_in(p, 1, 0)["stage input"] == 1 + 1);  // its own, and chunk 1's of the step before
  REQUIRE(alive_in(p, 1, 1)["stage input"] == 2 + 1);
  REQUIRE(alive_in(p, 1, 2)["stage input"] == 3);
  // Then what f1' reads is there while b0' runs, and the gradient that b1' reads comes after it.
  CHECK(alive_in(p, 1, 3)["stage input"] == 4);
  CHECK(alive_in(p, 1, 3)["received gradient"] == 0);
  // The input of f0' stays to the end, as the last that the warm-up received, and its gradient.
  CHECK(alive_in(p, 1, 5)["stage input"] == 1 + 2 + 1 + 1);
  CHECK(alive_in(p, 1, 5)["input gradient"] == 1);
  CHECK(alive_in(p, 1, 6)["input gradient"] == 2);  // and the one that b1' sent
}

TEST_CASE("what an interleaved rank sent stays until its next steady pass begins") {
  // Given the first of 2 ranks: f0 f1 f0' f1' f2 b0' f3 b1' ...
  const Problem p = interleaved(2, 8);
  const auto outputs = [&](std::int32_t number) { return alive_in(p, 0, number)["output"]; };
  const int of_f2 = outputs(2) - outputs(1);  // as f1 leaves
  const int of_b0 = outputs(4) - outputs(3);  // as f1' left
  CHECK(outputs(5) == outputs(4) + of_f2 + 1);
  CHECK(outputs(6) == outputs(4) + of_f2 - of_b0);
}

TEST_CASE("the first rank keeps what arrives before longer groups need it") {
  Problem p = interleaved(2, 16);
  const auto before_second_chunk = [&](std::int64_t group) {
    p.runtime.megatron.microbatch_group_size_per_vp_stage = group;
    return alive_in(p, 0, static_cast<std::int32_t>(group))["stage input"];
  };
  CHECK(before_second_chunk(2) == 1);
  CHECK(before_second_chunk(4) == 3);
  CHECK(before_second_chunk(8) == 7);
}
