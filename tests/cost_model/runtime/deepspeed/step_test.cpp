// DeepSpeed's optimizer classes against sums worked by hand.
#include "cost_model/runtime/deepspeed/stage.hpp"

#include "cost_model/program/play.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/remember/evaluator.hpp"
#include "cost_model/runtime/deepspeed/plan.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

struct Totals {
  double resident;  // GB = 1e9 bytes, states and buffers that exist before the first step
  double step;      // most from the last gradient to the end of the step, activations gone
};

bool is_workspace(const TensorSpec& spec) {
  return spec.category == Category::workspace;
}

Totals totals(const Problem& p) {
  const WeightInventory inventory = weight_inventory(p.model);
  const StageProgram program = deepspeed_stage(p, inventory, stages(p).front());
  Bytes resident;
  for (const TensorSpec& spec : program.resident) {
    if (!is_workspace(spec)) resident += spec.bytes;
  }
  // What the backward passes left is what the step frees.
  Bytes left;
  for (const Event& event : program.step.forward) {
    if (!event.is_of_tensor()) continue;
    const TensorSpec& spec = program.step.tensors[static_cast<std::size_t>(event.index)];
    if (spec.carried) left += spec.bytes;
  }
  const Footprint step = fold(program.step, program.step.forward, Phase::optimizer_step);
  const auto gigabytes = [](Bytes b) { return static_cast<double>(b.count()) / 1e9; };
  return {gigabytes(resident), gigabytes(resident + left + step.peak.live.allocated())};
}

Problem llama_7b(ZeroStage zero) {
  return problem(Runtime::deepspeed, "llama-7b", {.dp = 8, .zero = zero});
}

}  // namespace

// 2 bytes x parameters = 13.48 GB, 4 x = 26.95, 12 x / 8 = 10.11, 2 x / 8 = 1.68, bucket 1.0.
// Tensors across the border of two ranks' parts add up to 0.2 GB to what a rank owns.
TEST_CASE("each of DeepSpeed's optimizer classes holds its own copies, LLaMA-7B on 8 GPUs") {
  const double overhang = 0.2;
  // 14 x; gradients and both fp32 forms of them: 24 x.
  Totals t = totals(llama_7b(ZeroStage::none));
  CHECK(t.resident == Approx(94.3).margin(0.1));
  CHECK(t.step == Approx(161.7).margin(0.1));
  // Gradients 2 x, bucket, owned gradients: 13.48 + 10.11 + 13.48 + 1.0 + 1.68; but a bucket of
  // gradients, 1.0, has gone into it before the owned ones get room.
  t = totals(llama_7b(ZeroStage::optimizer));
  CHECK(t.resident == Approx(23.6).margin(0.1));
  CHECK(t.step == Approx(38.7).margin(overhang));
  // 23.6 + 1.68 owned + 6 x / 8 = 5.05.
  t = totals(llama_7b(ZeroStage::gradients));
  CHECK(t.resident == Approx(23.6).margin(0.1));
  CHECK(t.step == Approx(30.3).margin(overhang));
  // 16 x / 8 + bucket; 6 x / 8 in the step.
  t = totals(llama_7b(ZeroStage::parameters));
  CHECK(t.resident == Approx(14.5).margin(0.1));
  CHECK(t.step == Approx(19.5).margin(0.1));
}

// 18 x parameters: 2 x, 4 x of masters, 8 x of moments, made by gradients of 4 x.
TEST_CASE("FP16_Optimizer makes its moments before the first step, ZeRO in it") {
  const auto construction = [](const Problem& p) {
    const Evaluator evaluator(p);
    const Stage stage = stages(p).front();
    const Startup startup = evaluator.startup(p, stage, evaluator.stage_program(p, stage));
    const Block& block = startup.construction;
    const MemoryBreakdown m = fold(block, block.forward, Phase::init).peak.live;
    return static_cast<double>((m.allocated() - m[Category::workspace]).count()) / 1e9;
  };
  CHECK(construction(llama_7b(ZeroStage::none)) == Approx(121.3).margin(0.1));
  Problem p = llama_7b(ZeroStage::gradients);
  const double lazy = construction(p);
  p.runtime.deepspeed.version = 12;
  CHECK(construction(p) - lazy == Approx(12 * 6.738 / 8).margin(0.01));
}

TEST_CASE("BF16_Optimizer keeps both forms of all gradients and casts the buffer whole") {
  Problem p = llama_7b(ZeroStage::optimizer);
  p.runtime.deepspeed.fp32_grad_accumulation = true;
  const Totals t = totals(p);
  CHECK(t.resident == Approx(64.0).margin(0.1));
  CHECK(t.step == Approx(77.5).margin(0.1));
}

TEST_CASE("a second shard of the parameters for gathers inside a node") {
  Problem p = problem(Runtime::deepspeed, "llama-7b", {.dp = 16, .zero = ZeroStage::parameters});
  p.runtime.deepspeed.hpz_partition_size = 8;
  // 16 x / 16 + bucket + 2 x / 8.
  CHECK(totals(p).resident == Approx(6.74 + 1.0 + 1.68).margin(0.1));
  p.runtime.deepspeed.hpz_partition_size = 32;  // DeepSpeed takes the 16 there are
  CHECK(totals(p).resident == Approx(6.74 + 1.0 + 0.84).margin(0.1));
}

TEST_CASE("checkpoints are divided over tensor parallelism or kept on the host") {
  // What the forward pass of one layer leaves.
  const auto kept = [](bool partitioned, bool on_host) {
    Problem p = problem(Runtime::deepspeed, "gpt3-175b",
                        {.dp = 2, .tp = 8, .pp = 16, .recompute = Recompute::full});
    p.layout.zero = ZeroStage::optimizer;
    p.training.sequence_length = 2048;
    p.runtime.deepspeed.partition_activations = partitioned;
    p.runtime.deepspeed.cpu_checkpointing = on_host;
    const StageProgram program = Evaluator(p).stage_program(p, stages(p)[1]);
    const Run& layers = program.chunks.front().runs.at(1);  // the first run receives
    CHECK(layers.count == 6);
    return layers.block->forward.left[Category::activations];
  };
  const Bytes whole{2LL * 2048 * 12'288};
  CHECK(kept(false, false) == whole);
  CHECK(8 * kept(true, false) == whole);
  CHECK(kept(false, true) == Bytes{});
  CHECK(kept(true, true) == Bytes{});
}

// runtime/activation_checkpointing/checkpointing.py: number_checkpoints parts of 2 h T / t at once.
TEST_CASE("contiguous checkpoints are made at once") {
  const auto kept = [](std::int64_t number, bool contiguous) {
    Problem p =
        problem(Runtime::deepspeed, "gpt3-175b", {.dp = 2, .tp = 8, .recompute = Recompute::full});
    p.training.sequence_length = 2048;
    p.model.layers = 4;
    p.runtime.deepspeed.partition_activations = true;
    p.runtime.deepspeed.contiguous_checkpoints = contiguous;
    p.runtime.deepspeed.number_checkpoints = number;
    const StageProgram program = Evaluator(p).stage_program(p, stages(p).front());
    // Nothing is left over.
    const Playback played = play_step(program, representative_passes(p, 0));
    Bytes resident;
    for (const TensorSpec& spec : program.resident) resident += spec.bytes;
    CHECK(played.left.allocated() == resident);
    return program.chunks.front().runs.front().block->forward.left[Category::activations];
  };
  const Bytes part{2LL * 2048 * 12'288 / 8};
  CHECK(kept(0, true) - kept(0, false) == 4 * part);
  CHECK(kept(7, true) - kept(0, false) == 7 * part);
}

TEST_CASE("saving whole weights gathers one module at a time") {
  Problem p = llama_7b(ZeroStage::parameters);
  p.runtime.deepspeed.gathers_on_save = true;
  const StageProgram program = Evaluator(p).stage_program(p, stages(p).front());
  // The embedding's 32,000 x 4,096 elements of two bytes.
  CHECK(fold(program.checkpoint, program.checkpoint.forward, Phase::checkpoint)
            .peak.live.allocated() == Bytes{2LL * 32'000 * 4096});
}

TEST_CASE("MiCS divides the states over its own group") {
  Problem p =
      problem(Runtime::deepspeed, "llama-7b", {.dp = 16, .hsdp = 8, .zero = ZeroStage::parameters});
  // 16 x / 8 and the bucket.
  CHECK(totals(p).resident == Approx(13.48 + 1.0).margin(0.1));
}

TEST_CASE("one rank owns every weight of its stage, its own copy of a tied table among them") {
  Problem p = problem(Runtime::deepspeed, "gpt2-xl", {.pp = 2, .zero = ZeroStage::optimizer});
  p.training.sequence_length = 1024;
  const WeightInventory inventory = weight_inventory(p.model);
  const Stage last = stages(p).back();
  const Bytes parameters = model_states(p, inventory, last).parameters;
  // The flat buffer is padded to two elements.
  CHECK(parameters - deepspeed_plan(p, inventory, last).boundary < Bytes{2 * 2});
}

// runtime/zero/stage_1_and_2.py and stage3.py reduce as gradients come, the others at the boundary.
TEST_CASE("a bucket is copied when gradients are reduced, with either kind of layers") {
  const auto copies = [](ZeroStage zero, std::int64_t tp, std::int64_t version) {
    Problem p = problem(Runtime::deepspeed, "gpt2-xl", {.dp = 4, .tp = tp, .zero = zero});
    p.training.sequence_length = 1024;
    p.runtime.deepspeed.version = version;
    const StageProgram program = Evaluator(p).stage_program(p, stages(p).front());
    std::pair<bool, bool> found{false, false};  // in the backward passes, in the step
    for (const Run& run : program.chunks.front().runs) {
      for (const TensorSpec& t : run.block->block().tensors)
        found.first |= t.name == "copy of the bucket";
    }
    for (const TensorSpec& t : program.step.tensors)
      found.second |= t.name == "flattened gradients to reduce";
    return found;
  };
  for (const std::int64_t tp : {1, 5}) {
    CAPTURE(tp);
    CHECK(copies(ZeroStage::none, tp, 19) == std::pair(false, true));
    CHECK(copies(ZeroStage::optimizer, tp, 5) == std::pair(false, true));
    CHECK(copies(ZeroStage::optimizer, tp, 19) == std::pair(false, false));
    CHECK(copies(ZeroStage::gradients, tp, 19) == std::pair(true, false));
    CHECK(copies(ZeroStage::parameters, tp, 19) == std::pair(true, false));
  }
}

// Small models: gathered parameters, buckets and copies outweigh what the third stage divides.
TEST_CASE("stage 3 can need more than stage 2") {
  const auto peak = [](ZeroStage zero) {
    const Problem p = problem(Runtime::deepspeed, "qwen2.5-0.5b", {.dp = 8, .zero = zero});
    const StageProgram program = deepspeed_stage(p, weight_inventory(p.model), stages(p).front());
    return play_step(program, representative_passes(p, 0)).peak.live.allocated();
  };
  CHECK(peak(ZeroStage::parameters) > peak(ZeroStage::gradients));
}
