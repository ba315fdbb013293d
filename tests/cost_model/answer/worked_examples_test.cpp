// Llama 3 8B in bf16 on 8 GPUs, 8,192 tokens: what each runtime keeps, worked by hand in GiB.
#include "cost_model/answer/estimate.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

// Two bytes a parameter are 14.96 GiB; eight ranks hold 1.87 of them each.
Problem llama3_8b(Runtime runtime, ZeroStage zero, const std::vector<Override>& settings = {}) {
  Problem p = tests::problem(runtime, "llama3-8b", {.dp = 8, .zero = zero}, "H100-80GB");
  p.runtime = load_runtime(runtime, settings);
  p.training.sequence_length = 8192;
  return p;
}

StageMemory memory_of(const Problem& p) {
  const Evaluator evaluator(p);
  return stage_memory(p, evaluator, stages(p).front(), 0);
}

double gib(const MemoryBreakdown& m, Category category) {
  return gibibytes(m[category]);
}

}  // namespace

TEST_CASE("Megatron-Core with the distributed optimizer") {
  const MemoryBreakdown m = memory_of(llama3_8b(Runtime::megatron, ZeroStage::optimizer)).memory;
  CHECK(gib(m, Category::parameters) == Approx(14.96).margin(0.01));
  CHECK(gib(m, Category::gradients) == Approx(29.92).margin(0.01));
  CHECK(gib(m, Category::master_parameters) + gib(m, Category::optimizer_states) ==
        Approx(11.22).margin(0.01));
  // Placeholder weight gradients: qkv, projection, fc1, fc2, head.
  const double placeholders =
      2.0 * (6144 * 4096 + 4096 * 4096 + 28'672 * 4096 + 4096 * 14'336 + 128'256 * 4096) /
      static_cast<double>(gibi);
  CHECK(placeholders == Approx(1.39).margin(0.01));
  CHECK(gib(m, Category::workspace) >= placeholders);
}

TEST_CASE("Megatron-Core in 16 bits wherever it can") {
  const MemoryBreakdown m = memory_of(llama3_8b(Runtime::megatron, ZeroStage::optimizer,
                                                {{"grad_reduce_in_bf16", "true"},
                                                 {"exp_avg_dtype", "bf16"},
                                                 {"exp_avg_sq_dtype", "bf16"}}))
                                .memory;
  CHECK(gib(m, Category::gradients) == Approx(14.96).margin(0.01));
  // Two bytes each of the moments, and what the bf16 parameters lack of the master ones.
  CHECK(gib(m, Category::master_parameters) == Approx(1.87).margin(0.01));
  CHECK(gib(m, Category::optimizer_states) == Approx(3.74).margin(0.01));
}

TEST_CASE("DeepSpeed's stages 1 to 3") {
  const std::vector<Override> wide{{"data_types.grad_accum_dtype", "fp32"}};
  ModelStates s = memory_of(llama3_8b(Runtime::deepspeed, ZeroStage::optimizer, wide)).states;
  // Fp32 and bf16 gradients, both whole.
  CHECK(gibibytes(s.total()) == Approx(71.1).margin(0.1));
  s = memory_of(llama3_8b(Runtime::deepspeed, ZeroStage::gradients)).states;
  CHECK(gibibytes(s.total()) == Approx(26.2 + 1.87).margin(0.05));
  s = memory_of(llama3_8b(Runtime::deepspeed, ZeroStage::parameters)).states;
  CHECK(gibibytes(s.total()) == Approx(13.1 + 1.87).margin(0.05));
}

TEST_CASE("FSDP2 and DDP") {
  ModelStates s = memory_of(llama3_8b(Runtime::fsdp2, ZeroStage::parameters)).states;
  CHECK(gibibytes(s.total()) == Approx(14.96).margin(0.01));
  s = memory_of(llama3_8b(Runtime::ddp, ZeroStage::none)).states;
  CHECK(gibibytes(s.total()) == Approx(119.7).margin(0.1));
  // Gradients that are no views of the buckets they are reduced in.
  const MemoryBreakdown m =
      memory_of(llama3_8b(Runtime::ddp, ZeroStage::none, {{"gradient_as_bucket_view", "false"}}))
          .memory;
  CHECK(gib(m, Category::communication_buffers) == Approx(29.92).margin(0.05));
}
