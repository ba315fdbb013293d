// What stage 1 does with gradients: kept to the boundary, kept in fp32, or reduced as they are
// made.
#include <algorithm>

#include "cost_model/program/play.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/remember/evaluator.hpp"
#include "cost_model/runtime/deepspeed/plan.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

// 8.03 billion parameters over 8 ranks, a part of a layer's is a gradient of less than a bucket.
Problem llama3_8b() {
  Problem p = problem(Runtime::deepspeed, "llama3-8b", {.dp = 8, .zero = ZeroStage::optimizer});
  p.training.global_batch = 16;
  return p;
}

StageProgram program_of(const Problem& p) {
  return Evaluator(p).stage_program(p, stages(p).front());
}

std::int64_t rank_of(const Problem& p) {
  return deepspeed_rank(p, weight_inventory(p.model), stages(p).front());
}

// Of a whole step, and that nothing is left over.
Bytes peak_of(const Problem& p) {
  const StageProgram program = program_of(p);
  const Playback played = play_step(program, representative_passes(p, 0));
  Bytes resident;
  for (const TensorSpec& spec : program.resident) resident += spec.bytes;
  CHECK(played.left.allocated() == resident);
  return played.peak.live.allocated() - resident;
}

Bytes bytes_of(const Block& block, std::string_view name) {
  Bytes most;
  for (const TensorSpec& t : block.tensors) {
    if (t.name == name) most = std::max(most, t.bytes);
  }
  return most;
}

constexpr std::int64_t all = 8'030'261'248, part = all / 8, table = 128'256LL * 4096;

}  // namespace

TEST_CASE("fp16 gradients that add up in fp32 are four bytes from when they are made") {
  Problem p = llama3_8b();
  p.training.precision = Precision::fp16;
  const Bytes narrow = peak_of(p);
  p.runtime.deepspeed.fp32_grad_accumulation = true;
  CHECK(widens_gradients(p));
  // The part comes beside all of them, the embedding's still where it was made.
  const Bytes wide = peak_of(p);
  CHECK(wide >= Bytes{4 * all + 4 * part + 4 * 500'000'000LL});
  CHECK(wide - narrow >= Bytes{2 * all});
  const Block head = program_of(p).chunks.front().first_runs.back().block->block();
  CHECK(bytes_of(head, "gradient") == Bytes{4 * table});
  CHECK(rank_of(p) == 0);

  p.layout.offload = Offload::optimizer;
  CHECK(!widens_gradients(p));
  p.layout.offload = Offload::none;
  p.training.precision = Precision::bf16;  // BF16_Optimizer's
  CHECK(!widens_gradients(p));
}

TEST_CASE("overlap_comm reduces gradients as they are made in the last backward pass") {
  Problem p = llama3_8b();
  p.runtime.deepspeed.overlap_comm = true;
  CHECK(!reduces_as_made(p));  // the first of two keeps them all
  const Bytes two = peak_of(p);
  p.training.global_batch = 8;
  CHECK(reduces_as_made(p));
  CHECK(two - peak_of(p) > Bytes{2 * all - 3 * 2 * part});
  p.runtime.deepspeed.overlap_comm = false;
  CHECK(!reduces_as_made(p));
}

// A bucket of 500 million elements is less than the table of 525 million.
TEST_CASE("a rank that owns nothing of the output layer keeps its gradient where no bucket can") {
  Problem p = llama3_8b();
  p.runtime.deepspeed.overlap_comm = true;
  p.training.global_batch = 8;
  const auto keeps = [&](std::int64_t bucket) {
    p.runtime.deepspeed.reduce_bucket_size = bucket;
    return deepspeed_plan(p, weight_inventory(p.model), stages(p).front()).keeps_head;
  };
  CHECK(keeps(500'000'000));
  CHECK(!keeps(600'000'000));
}

// An early rank gets room when the others' gradients are all there.
TEST_CASE("the rank that stage 1 is of holds most at the boundary") {
  Problem p = llama3_8b();
  p.layout.dp = 64;
  const std::vector<std::int64_t> sizes =
      tensor_sizes(p, weight_inventory(p.model), stages(p).front());
  const Owned owned = owned_elements(sizes, 64, p.runtime.deepspeed.reduce_bucket_size);
  CHECK(rank_of(p) == owned.beside.rank);
  p.layout.zero = ZeroStage::gradients;  // where others run beside what the first has left
  CHECK(rank_of(p) == owned.any.rank);
  p.training.global_batch = 64;
  CHECK(rank_of(p) == owned.early.rank);
}

// Two forms of half of the parameters are more than other ranks' gradients.
TEST_CASE("of two ranks the one that owns more holds most in the step") {
  Problem p = problem(Runtime::deepspeed, "gpt2-xl", {.dp = 2, .zero = ZeroStage::optimizer});
  const std::vector<std::int64_t> sizes =
      tensor_sizes(p, weight_inventory(p.model), stages(p).front());
  const Owned owned = owned_elements(sizes, 2, p.runtime.deepspeed.reduce_bucket_size);
  CHECK(owned.beside.rank == 0);
  CHECK(owned.any.rank == 1);
  CHECK(rank_of(p) == 1);
}
