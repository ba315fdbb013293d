// What offload keeps on the host against sums worked by hand.
#include "cost_model/answer/host_memory.hpp"

#include "cost_model/answer/estimate.hpp"
#include "cost_model/legality/legality.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

double gigabytes(Bytes bytes) {
  return static_cast<double>(bytes.count()) / 1e9;
}

HostMemory of_first_rank(const Problem& p) {
  return host_memory(p, weight_inventory(p.model), stages(p).front(), 0);
}

Problem llama_7b(Runtime runtime, ZeroStage zero, Offload offload) {
  Problem p = problem(runtime, "llama-7b", {.dp = 8, .zero = zero, .offload = offload});
  p.training.sequence_length = 2048;
  p.training.global_batch = 8;
  return p;
}

}  // namespace

// 6,738,415,616 parameters over 8 ranks: 842.3 million a rank.
TEST_CASE("DeepSpeed's CPU optimizer keeps 18 bytes a parameter of the shard, LLaMA-7B on 8 GPUs") {
  // 18 x; and the largest tensor's gradient, 2 x 131,072,000.
  Problem p = llama_7b(Runtime::deepspeed, ZeroStage::gradients, Offload::optimizer);
  CHECK(gigabytes(of_first_rank(p).total()) == Approx(15.16 + 0.26).margin(0.01));
  p.layout.zero = ZeroStage::parameters;
  CHECK(gigabytes(of_first_rank(p).total()) == Approx(15.16).margin(0.01));
  // 20 x with the parameters.
  p.layout.offload = Offload::parameters;
  CHECK(gigabytes(of_first_rank(p).total()) == Approx(16.85).margin(0.01));
  CHECK(gigabytes(estimate(p, Evaluator(p)).host_a_node) == Approx(134.8).margin(0.1));
  p.layout.offload = Offload::none;
  CHECK(of_first_rank(p) == HostMemory{});
}

// Resident 2 x + the largest gradient = 13.48 + 0.26 GB; the bucket comes with the first gradient.
TEST_CASE("what DeepSpeed offloads is not on the GPU") {
  const Problem p = llama_7b(Runtime::deepspeed, ZeroStage::gradients, Offload::optimizer);
  const StageProgram program = Evaluator(p).stage_program(p, stages(p).front());
  Bytes resident;
  for (const TensorSpec& spec : program.resident) {
    if (spec.category != Category::workspace) resident += spec.bytes;
  }
  CHECK(gigabytes(resident) == Approx(13.48 + 0.26).margin(0.01));
}

TEST_CASE("Megatron-Core offloads 16 bytes a parameter of the shard, FSDP2 its whole shard") {
  Problem p = llama_7b(Runtime::megatron, ZeroStage::optimizer, Offload::optimizer);
  CHECK(gigabytes(of_first_rank(p).total()) == Approx(16 * 0.8423).epsilon(0.001));
  // fp32 parameters, gradients and two moments.
  p = llama_7b(Runtime::fsdp2, ZeroStage::parameters, Offload::parameters);
  CHECK(gigabytes(of_first_rank(p).total()) == Approx(16 * 0.8423).epsilon(0.001));
}

TEST_CASE("checkpoints of Megatron-DeepSpeed's layers can lie on the host") {
  Problem p =
      problem(Runtime::deepspeed, "gpt3-175b", {.tp = 8, .pp = 16, .recompute = Recompute::full});
  p.training.sequence_length = 2048;
  p.training.global_batch = 64;
  p.layout.offload = Offload::activations;
  REQUIRE_FALSE(first_violation(p));
  // 2 h T a layer, of 6 layers and 16 micro-batches.
  const Bytes all{2LL * 12'288 * 2048 * 6 * 16};
  REQUIRE(of_first_rank(p).activations == all);
  p.runtime.deepspeed.partition_activations = true;
  REQUIRE(8 * of_first_rank(p).activations == all);
  // By DeepSpeed's own key, too.
  p.layout.offload = Offload::none;
  REQUIRE(of_first_rank(p).activations == Bytes{});
  p.runtime.deepspeed.cpu_checkpointing = true;
  REQUIRE(8 * of_first_rank(p).activations == all);

  p.layout.offload = Offload::activations;
  p.layout.recompute = Recompute::none;
  REQUIRE(first_violation(p).has_value());
}

TEST_CASE("Megatron-Core's layers leave what they saved to the host, and take it back") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.dp = 8, .zero = ZeroStage::optimizer});
  const auto peak = [&] {
    const Estimate e = estimate(p, Evaluator(p));
    return e.peak().memory.allocated();
  };
  const Bytes without = peak();
  CHECK(of_first_rank(p).total() == Bytes{});
  p.runtime.megatron.cpu_offloading_num_layers = 1;
  const Bytes one = of_first_rank(p).total();
  p.runtime.megatron.cpu_offloading_num_layers = 16;
  CHECK(of_first_rank(p).total() == 16 * one);
  // At the peak, behind the last layer's forward pass, none of it is on the GPU.
  CHECK(without - peak() == 16 * one);
}
