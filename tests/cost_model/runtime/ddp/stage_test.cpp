// DistributedDataParallel around models of Transformers 5.24.0, as accelerate 1.15.0 wraps them,
// run on fake tensors (PyTorch 2.15.0): MiB allocated at the peak without workspaces.
#include "cost_model/runtime/ddp/stage.hpp"

#include "tests/catch.hpp"
#include "tests/specs.hpp"
#include "tests/tracked.hpp"

using namespace zeroplan;
using tests::tracked_mib;

namespace {

struct Tracked {
  std::string_view model;
  std::int64_t layers, sequence, micro_batch, steps;
  Recompute recompute;
  bool views;
  double mib;
};

Problem problem_of(const Tracked& run) {
  Problem p = tests::problem(Runtime::ddp, run.model,
                             {.dp = 8,
                              .micro_batch = run.micro_batch,
                              .zero = ZeroStage::none,
                              .recompute = run.recompute},
                             "H100-80GB");
  p.model.layers = run.layers;
  p.training.sequence_length = run.sequence;
  p.training.global_batch = 8 * run.micro_batch * run.steps;
  p.runtime.ddp.gradient_as_bucket_view = run.views;
  return p;
}

}  // namespace

TEST_CASE("replicas hold in fp32 what autocast does not narrow, and a copy of what it does") {
  using enum Recompute;
  const Tracked run = GENERATE(Tracked{"llama3.2-1b", 2, 2048, 1, 1, none, false, 10'148.7},
                               Tracked{"llama3-8b", 2, 2048, 1, 1, none, false, 28'554.9},
                               Tracked{"llama3-8b", 4, 4096, 2, 1, full, false, 43'206.7},
                               Tracked{"qwen2.5-0.5b", 24, 1024, 4, 1, none, false, 21'860.2},
                               Tracked{"qwen3-0.6b", 28, 2048, 2, 2, none, true, 28'648.1},
                               Tracked{"gpt2-xl", 12, 1024, 4, 1, none, false, 16'436.3},
                               Tracked{"phi-3-mini", 4, 2048, 4, 1, none, false, 19'470.2});
  CAPTURE(run.model, run.layers);
  CHECK(tracked_mib(problem_of(run)) == Approx(run.mib).epsilon(0.0005));
}

TEST_CASE("norms of what fp32 linears wrote keep that, where those of 16 bits keep a copy") {
  const Tracked run =
      GENERATE(Tracked{"qwen3-0.6b", 8, 1024, 4, 1, Recompute::none, true, 15'310.7},
               Tracked{"gemma3-1b", 6, 2048, 1, 1, Recompute::none, true, 15'401.3});
  CAPTURE(run.model);
  Problem p = problem_of(run);
  p.training.precision = Precision::fp32;
  CHECK(tracked_mib(p) == Approx(run.mib).epsilon(0.001));
}

TEST_CASE(
    "each linear that reads what experts read has a 16-bit copy of it, the gate of the others too, "
    "and keeps what it weighs") {
  const Tracked run{"mixtral-8x7b", 2, 4096, 4, 1, Recompute::none, true, 0};
  Problem p = problem_of(run);
  p.model.moe->shared_intermediate_size = 1024;
  const double without = tracked_mib(p);
  p.model.moe->shared_expert_gate = true;
  const double copies = 2. * 2 * 4 * 4096 * 4096 / mebi;
  const double outputs = copies;
  CHECK(tracked_mib(p) - without == Approx(copies + outputs).epsilon(0.01));
}

TEST_CASE("gradients are views of buckets only where no micro-batch adds to them") {
  Tracked run{"llama3-8b", 2, 512, 1, 1, Recompute::none, false, 0};
  const auto with_and_without = [&] {
    run.views = false;
    const double without = tracked_mib(problem_of(run));
    run.views = true;
    return std::pair(tracked_mib(problem_of(run)), without);
  };
  const auto [viewed, copied] = with_and_without();
  CHECK(viewed < 0.96 * copied);
  run.steps = 3;
  const auto [viewed_later, copied_later] = with_and_without();
  CHECK(viewed_later == copied_later);
}
