#include "cost_model/program/schedule.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

std::string text(const std::vector<Pass>& order) {
  std::string out;
  for (const Pass& pass : order) {
    out += pass.kind == PassKind::forward ? 'f' : 'b';
    out += std::to_string(pass.micro_batch);
    if (pass.chunk > 0) out += std::string(static_cast<std::size_t>(pass.chunk), '\'');
    out += ' ';
  }
  return out;
}

// Chunks in flight at most, by counting.
std::int64_t most_in_flight(const std::vector<Pass>& order) {
  std::int64_t now = 0;
  std::int64_t most = 0;
  for (const Pass& pass : order) {
    now += pass.kind == PassKind::forward ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

}  // namespace

TEST_CASE("1F1B warms up by the ranks behind it") {
  const Problem p = problem(Runtime::megatron, "llama3-70b", {.pp = 4});
  REQUIRE(text(passes(p, 3, 3)) == "f0 b0 f1 b1 f2 b2 ");
  REQUIRE(text(passes(p, 2, 3)) == "f0 f1 b0 f2 b1 b2 ");
  REQUIRE(text(passes(p, 0, 3)) == "f0 f1 f2 b0 b1 b2 ");
}

TEST_CASE("GPipe keeps every micro-batch") {
  const Problem p = problem(Runtime::fsdp2, "llama3-70b", {.pp = 2, .schedule = Schedule::gpipe});
  REQUIRE(text(passes(p, 0, 3)) == "f0 f1 f2 b0 b1 b2 ");
}

TEST_CASE("interleaving goes through the chunks in groups of pp micro-batches") {
  const Problem p = problem(Runtime::megatron, "llama3-70b",
                            {.pp = 2, .vpp = 2, .schedule = Schedule::interleaved});
  // Rank 1: warm-up 2 x (2-1-1) + (2-1) x 2 = 2.
  REQUIRE(text(passes(p, 1, 4)) == "f0 f1 f0' b0' f1' b1' f2 b0 f3 b1 f2' b2' f3' b3' b2 b3 ");
}

// Megatron-LM schedules.py: chunks alive on rank 0 with 64 micro-batches of 8 stages.
TEST_CASE("the order gives the published numbers in flight") {
  const auto most = [](std::int64_t pp, std::int64_t vpp, std::int64_t rank) {
    const Schedule schedule = vpp > 1 ? Schedule::interleaved : Schedule::one_f_one_b;
    const Problem p =
        problem(Runtime::megatron, "gpt3-175b", {.pp = pp, .vpp = vpp, .schedule = schedule});
    return most_in_flight(passes(p, rank, 64));
  };
  REQUIRE(most(8, 1, 0) == 8);
  REQUIRE(most(8, 1, 5) == 3);
  REQUIRE(most(8, 2, 0) == 23);
  REQUIRE(most(8, 4, 0) == 39);
  REQUIRE(most(4, 2, 0) == 11);
  REQUIRE(most(16, 2, 0) == 47);
  REQUIRE(most(8, 4, 1) == 37);
}

// Buffers of zeroplan's engine, checkpoints on the host and bounds of a search count by a formula.
TEST_CASE("the order and the formula agree on what is in flight") {
  for (const Schedule schedule : {Schedule::gpipe, Schedule::one_f_one_b, Schedule::interleaved}) {
    for (const std::int64_t pp : {2, 4, 8}) {
      Problem p = problem(
          Runtime::megatron, "gpt3-175b",
          {.pp = pp, .vpp = schedule == Schedule::interleaved ? 3 : 1, .schedule = schedule});
      p.training.global_batch = 3 * pp;
      for (std::int64_t rank = 0; rank < pp; ++rank) {
        CAPTURE(name_of(schedule), pp, rank, micro_batches(p));
        REQUIRE(most_in_flight(passes(p, rank, micro_batches(p))) == chunks_in_flight(p, rank));
      }
    }
  }
}

// Megatron-Core core/pipeline_parallel/schedules.py, rank 0 with many micro-batches, in layers of
// the model: L (1 + (p-1)/(p v)).
TEST_CASE("micro-batches in flight follow the schedule") {
  const auto in_flight = [](Runtime runtime, Layout layout, std::int64_t batch, std::int64_t rank) {
    Problem p = problem(runtime, "gpt3-175b", layout);
    p.training.sequence_length = 2048;
    p.training.global_batch = batch;
    return chunks_in_flight(p, rank);
  };
  const Layout plain{.pp = 8};
  REQUIRE(in_flight(Runtime::megatron, plain, 64, 0) == 8);
  REQUIRE(in_flight(Runtime::megatron, plain, 64, 7) == 1);
  REQUIRE(in_flight(Runtime::megatron, plain, 3, 0) == 3);
  REQUIRE(in_flight(Runtime::fsdp2, {.pp = 8, .schedule = Schedule::gpipe}, 64, 0) == 64);
  REQUIRE(in_flight(Runtime::megatron, {.pp = 8, .vpp = 2, .schedule = Schedule::interleaved}, 64,
                    0) == 23);
  REQUIRE(in_flight(Runtime::megatron, {.pp = 8, .vpp = 4, .schedule = Schedule::interleaved}, 64,
                    0) == 39);
  REQUIRE(in_flight(Runtime::megatron, {.pp = 8, .vpp = 4, .schedule = Schedule::interleaved}, 64,
                    1) == 37);
  REQUIRE(in_flight(Runtime::zero_paper, {.pp = 8, .schedule = Schedule::zb_h1}, 64, 7) == 8);
  REQUIRE(in_flight(Runtime::zero_paper, {.pp = 8, .schedule = Schedule::zb_h2}, 64, 0) == 15);
  REQUIRE(in_flight(Runtime::zero_paper, {.pp = 8, .schedule = Schedule::dualpipe}, 64, 0) == 9);
  REQUIRE(in_flight(Runtime::fsdp2, {.pp = 8, .vpp = 2, .schedule = Schedule::zb_v}, 64, 0) == 16);
  // No more than there are.
  REQUIRE(in_flight(Runtime::zero_paper, {.pp = 8, .schedule = Schedule::zb_h1}, 3, 7) == 3);
  REQUIRE(in_flight(Runtime::zero_paper, {.pp = 8, .schedule = Schedule::zb_h2}, 3, 0) == 3);
  REQUIRE(in_flight(Runtime::zero_paper, {.pp = 8, .schedule = Schedule::dualpipe}, 3, 0) == 6);
  REQUIRE(in_flight(Runtime::fsdp2, {.pp = 8, .vpp = 2, .schedule = Schedule::zb_v}, 3, 0) == 6);
  REQUIRE(in_flight(Runtime::megatron, {.pp = 1, .vpp = 1}, 64, 0) == 1);
}
