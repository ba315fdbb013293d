// What DeepSpeed's optimizers hold beside the states, against sums worked by hand.
#include "cost_model/runtime/deepspeed/plan.hpp"

#include "cost_model/program/play.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/remember/evaluator.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

DeepspeedPlan plan_of(const Problem& p) {
  return deepspeed_plan(p, weight_inventory(p.model), stages(p).front());
}

Bytes peak_of(const Problem& p) {
  const StageProgram program = Evaluator(p).stage_program(p, stages(p).front());
  return play_step(program, representative_passes(p, 0)).peak.live.allocated();
}

bool has_tensor(const Block& block, std::string_view name) {
  return std::ranges::any_of(
      block.tensors, [&](const TensorSpec& t) { return t.name == name && t.bytes > Bytes{}; });
}

constexpr std::int64_t llama3_70b_embedding = 128'256LL * 8192;

}  // namespace

// stage3.py: grad_partitions_flat_buffer is on self.device, the host's with offload_optimizer.
TEST_CASE("stage 3 searches for overflow on the host where the optimizer is there") {
  for (const Offload offload : {Offload::optimizer, Offload::parameters}) {
    Problem p =
        problem(Runtime::deepspeed, "llama3-70b",
                {.dp = 2, .zero = ZeroStage::parameters, .recompute = Recompute::full}, "H100");
    p.training.precision = Precision::fp16;
    CHECK(plan_of(p).check == 3 * Bytes{35'276'853'248});
    p.layout.offload = offload;
    const DeepspeedPlan plan = plan_of(p);
    CHECK(plan.check == Bytes{});
    // Half of the embedding's gradient, which is more than a bucket, and 250 million elements of
    // it in fp64.
    CHECK(plan.to_host == Bytes{2 * llama3_70b_embedding / 2 + 8 * 250'000'000LL});
    const Bytes parameters = offload == Offload::optimizer ? Bytes{2 * 35'276'853'248} : Bytes{};
    CHECK(peak_of(p) - parameters < 20 * Bytes{gibi});
  }
}

// stage3.py _overflow_check_and_loss_scale_update; bf16 has no scale to lower.
TEST_CASE("stage 3 searches for overflow in fp16, and takes norms tensor by tensor") {
  Problem p = problem(Runtime::deepspeed, "llama3-70b", {.dp = 2, .zero = ZeroStage::parameters});
  CHECK(plan_of(p).check == Bytes{8 * llama3_70b_embedding / 2});
}

// stage_1_and_2.py copy_grads_in_partition: each whole gradient is looked at, then leaves.
TEST_CASE("stages 1 and 2 send gradients to the host as they reduce them") {
  Problem p = problem(Runtime::deepspeed, "llama2-7b", {.dp = 4, .zero = ZeroStage::gradients});
  p.layout.offload = Offload::optimizer;
  const Bytes looked_at{8LL * 32'000 * 4096};
  for (const ZeroStage zero : {ZeroStage::optimizer, ZeroStage::gradients}) {
    p.layout.zero = zero;
    const DeepspeedPlan plan = plan_of(p);
    CHECK(plan.to_host == looked_at);
    CHECK(plan.check + plan.boundary + plan.owned == Bytes{});
    const StageProgram program = Evaluator(p).stage_program(p, stages(p).front());
    const auto& layer = program.chunks.front().runs.at(1).block->block();
    const std::string_view name = "gradients on their way to the host";
    CHECK(has_tensor(layer, name) == (zero == ZeroStage::gradients));
    CHECK(has_tensor(program.step, name) == (zero == ZeroStage::optimizer));
  }
}

// runtime/utils.py has_inf_or_nan: amin and amax since 0.19, a copy and masks before.
TEST_CASE("stage 2 looks for overflow with masks before 0.19") {
  Problem p = problem(Runtime::deepspeed, "llama2-7b", {.dp = 4, .zero = ZeroStage::gradients});
  const auto check = [&](std::int64_t version) {
    p.runtime.deepspeed.version = version;
    return plan_of(p).check;
  };
  const std::int64_t largest = 32'000LL * 4096;
  // Of a rank that owns the whole embedding, and less beside it than another.
  CHECK(check(18) - check(19) == Bytes{3 * largest});
  CHECK(check(13) == check(19));
  CHECK(check(19) <= Bytes{8 * largest});
  CHECK(check(19) > Bytes{7 * largest});
}

TEST_CASE("stage 3 gathers each parameter once") {
  Problem p = problem(Runtime::deepspeed, "qwen2.5-0.5b", {.dp = 2, .zero = ZeroStage::parameters});
  // All of it is used again within 500 million elements.
  const std::int64_t all = 494'032'768;
  CHECK(plan_of(p).live == Bytes{2 * all});
}

TEST_CASE("the second copy of ZeRO++ is divided among as few as two ranks") {
  Problem p = problem(Runtime::deepspeed, "qwen2.5-0.5b", {.dp = 8, .zero = ZeroStage::parameters});
  CHECK(plan_of(p).secondary == Bytes{});
  const Bytes all{2 * 494'032'768LL};
  for (const std::int64_t ranks : {2, 8}) {
    p.runtime.deepspeed.hpz_partition_size = ranks;
    CHECK(ranks * plan_of(p).secondary == all);
  }
}

// stage_1_and_2.py setup_buckets.
TEST_CASE("overlap fills a second bucket, in stage 1 too") {
  for (const ZeroStage zero : {ZeroStage::optimizer, ZeroStage::gradients}) {
    Problem p = problem(Runtime::deepspeed, "llama3-8b", {.dp = 8, .zero = zero});
    p.runtime.deepspeed.overlap_comm = false;
    CHECK(plan_of(p).bucket == Bytes{2 * 500'000'000LL});
    p.runtime.deepspeed.overlap_comm = true;
    CHECK(plan_of(p).bucket == Bytes{2 * 2 * 500'000'000LL});
  }
}

// stage_1_and_2.py allreduce_and_scatter: over 64 ranks the embedding of LLaMA-7B is of ranks 0 and
// 1, 105,287,744 and 25,784,256 elements, and the output layer as much of the last two.
TEST_CASE("stage 2 copies what several ranks own, a gradient larger than a bucket too") {
  Problem p = problem(Runtime::deepspeed, "llama-7b", {.dp = 64, .zero = ZeroStage::gradients});
  const auto copy = [&](std::int64_t bucket) {
    p.runtime.deepspeed.reduce_bucket_size = bucket;
    return plan_of(p).copy;
  };
  const Bytes embedding{2 * 32'000LL * 4096};
  CHECK(copy(120'000'000) == embedding);
  CHECK(copy(100'000'000) == embedding);  // of the output layer's: the smaller slice comes first
  CHECK(copy(500'000'000) < Bytes{2 * 500'000'000LL});  // none is filled to the last element
  p.layout.dp = 1;
  CHECK(copy(500'000'000) == Bytes{});
}

// A layer of Llama 3.2 1B has 60.8 million elements: eight and the norm are in the bucket of 500
// million, the ninth finds no room, and by then eight layers' parameters have gone.
TEST_CASE("layers whose gradients fill no bucket copy none, and what they gathered has gone") {
  Problem p = problem(Runtime::deepspeed, "llama3.2-1b", {.dp = 8, .zero = ZeroStage::parameters},
                      "H100-80GB");
  p.runtime.deepspeed.stage3_max_live_parameters = 2'000'000'000;  // all of them
  const StageProgram program = Evaluator(p).stage_program(p, stages(p).front());
  const Runs& runs = program.chunks.front().runs;
  REQUIRE(runs.size() == 4);  // the embedding, layers of two sorts, the head
  CHECK(!has_tensor(runs[2].block->block(), "copy of the bucket"));
  CHECK(has_tensor(runs[1].block->block(), "copy of the bucket"));
  CHECK(runs[2].count == 8);
  const std::int64_t layer = 60'821'504, norms = 4096;
  Bytes gone;
  for (const TensorSpec& spec : runs[1].block->block().tensors) {
    if (spec.name == "gathered parameters") gone = std::max(gone, spec.bytes);
  }
  CHECK(gone >= Bytes{2 * 8 * (layer - norms)});
  CHECK(gone <= Bytes{2 * 9 * (layer - norms)});
}

TEST_CASE("what is counted as 16 bits and is not is said") {
  Problem p = problem(Runtime::deepspeed, "llama3-8b", {.dp = 8, .zero = ZeroStage::optimizer},
                      "H100-80GB");
  p.runtime.deepspeed.fp32_grad_accumulation = true;
  CHECK(code_of(p).assumptions(p).empty());  // of bf16 BF16_Optimizer runs
  p.training.precision = Precision::fp16;
  CHECK(code_of(p).assumptions(p).empty());  // they are widened
  p.runtime.deepspeed.overlap_comm = true;
  p.training.global_batch = 8;
  CHECK(code_of(p).assumptions(p).size() == 1);  // but kept to the boundary
  p.layout.offload = Offload::optimizer;
  CHECK(code_of(p).assumptions(p).size() == 1);
  p.layout.zero = ZeroStage::gradients;
  CHECK(code_of(p).assumptions(p).empty());
}
