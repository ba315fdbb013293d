// The code of transformers 5.23.0 run on fake tensors, on one GPU under autocast and in accelerate
// 1.15.0's FSDP2: MiB allocated at the peak, but for workspaces, which a tracker of tensors cannot
// see.
#include "cost_model/answer/estimate.hpp"
#include "cost_model/answer/step_time.hpp"
#include "cost_model/runtime/pytorch_layers/block.hpp"
#include "tests/catch.hpp"
#include "tests/cost_model/network/loads.hpp"

using namespace zeroplan;

namespace {

struct Tracked {
  Runtime runtime;
  std::string_view model;
  std::int64_t layers, gpus, sequence, micro_batch;
  Recompute recompute;
  double mib;
};

Problem problem_of(const Tracked& run) {
  const bool shards = run.runtime == Runtime::fsdp2;
  Problem p = tests::problem(run.runtime, run.model,
                             {.dp = run.gpus,
                              .micro_batch = run.micro_batch,
                              .zero = shards ? ZeroStage::parameters : ZeroStage::none,
                              .recompute = run.recompute},
                             "H100-80GB");
  p.model.layers = run.layers;
  p.training.sequence_length = run.sequence;
  p.runtime.fsdp2.layers = LayerCode::huggingface;
  return p;
}

double tracked_mib(const Problem& p) {
  const MemoryBreakdown memory = estimate(p, Remembered(p.model)).stages.front().memory;
  const Bytes tracked = memory.allocated() - memory[Category::workspace];
  return static_cast<double>(tracked.count()) / mebi;
}

}  // namespace

TEST_CASE("a rank alone has no buckets and reduces nothing") {
  using enum Recompute;
  const Tracked run =
      GENERATE(Tracked{Runtime::ddp, "llama3-8b", 4, 1, 4096, 1, none, 34'628.6},
               Tracked{Runtime::ddp, "llama3-8b", 4, 1, 4096, 1, full, 30'168.6},
               Tracked{Runtime::ddp, "llama3.2-1b", 16, 1, 2048, 1, full, 20'861.1});
  Problem p = problem_of(run);
  CAPTURE(run.model, name_of(run.recompute));
  const double mib = tracked_mib(p);
  CHECK(mib == Approx(run.mib).epsilon(0.025));
  p.runtime.ddp.gradient_as_bucket_view = !p.runtime.ddp.gradient_as_bucket_view;
  CHECK(tracked_mib(p) == mib);
  CHECK(tests::loads_of(p).empty());
  CHECK(step_time(p, Remembered(p.model)).exposed == 0);
}

TEST_CASE("accelerate's policy reduces gradients in the format of the gathered weights") {
  using enum Recompute;
  const Tracked run =
      GENERATE(Tracked{Runtime::fsdp2, "mixtral-8x7b", 2, 8, 4096, 1, full, 14'734.8},
               Tracked{Runtime::fsdp2, "mixtral-8x7b", 2, 64, 4096, 1, full, 69'595.9});
  const Problem p = problem_of(run);
  CHECK(tracked_mib(p) == Approx(run.mib).epsilon(0.03));
  Problem titan = p;
  titan.runtime.fsdp2.layers = LayerCode::torchtitan;
  titan.runtime.fsdp2.recipe_date = 20240901;  // which has the same units
  const auto reduced = [](const Problem& q) {
    return tests::sent(tests::loads_of(q), [](const CollectiveLoad& load) {
      return load.collective == Collective::reduce_scatter;
    });
  };
  CHECK(2 * reduced(p) == reduced(titan));
}

// accelerate 1.13.0, and a loop that keeps the model's output.
TEST_CASE("grouped keys and values are repeated for eager attention alone") {
  Problem p = problem_of({Runtime::fsdp2, "llama3-8b", 4, 8, 4096, 1, Recompute::none, 15'453.3});
  CHECK(tracked_mib(p) == Approx(15'453.3).epsilon(0.003));
  CHECK_FALSE(huggingface_code(p).style.repeats_keys);
  p.training.attention = AttentionKernel::unfused;
  CHECK(huggingface_code(p).style.repeats_keys);
}

namespace {

// Trainer's loop drops the model's output before the backward pass, and the logits with it.
double dropped_logits_mib(const Problem& p) {
  return 2. * static_cast<double>(local_tokens(p) * p.model.vocab_size) / mebi;
}

}  // namespace

TEST_CASE("GPT-2's GELU keeps what its operators multiply, in fp32 under autocast") {
  const Tracked run =
      GENERATE(Tracked{Runtime::fsdp2, "gpt2-xl", 12, 8, 1024, 4, Recompute::none, 7'388.1},
               Tracked{Runtime::ddp, "gpt2-xl", 12, 1, 1024, 4, Recompute::none, 14'716.1});
  Problem p = problem_of(run);
  CHECK(tracked_mib(p) - dropped_logits_mib(p) == Approx(run.mib).epsilon(0.012));
  // A tanh, half the input, the tanh plus one; under autocast the input in fp32 too.
  const double with = tracked_mib(p);
  p.model.family = "opt";
  const double elements = 12. * 4 * 1024 * 6400 / mebi;
  CHECK(with - tracked_mib(p) == Approx((run.gpus > 1 ? 6 : 14) * elements).epsilon(0.001));
}

TEST_CASE("Gemma 2 caps logits and scores, and weighs in fp32 what its four norms give") {
  using enum Recompute;
  const Tracked run = GENERATE(Tracked{Runtime::fsdp2, "gemma2-2b", 6, 8, 2048, 1, none, 13'248.6},
                               Tracked{Runtime::fsdp2, "gemma2-2b", 6, 8, 4096, 1, full, 16'903.2});
  Problem p = problem_of(run);
  p.training.attention = AttentionKernel::unfused;
  CHECK(tracked_mib(p) - dropped_logits_mib(p) == Approx(run.mib).epsilon(0.015));
}
