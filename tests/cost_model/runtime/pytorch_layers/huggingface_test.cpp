// The code of transformers 5.23.0 run on fake tensors, on one GPU under autocast and in accelerate
// 1.15.0's FSDP2: MiB allocated at the peak, but for workspaces, which a tracker of tensors cannot
// see.
#include "tests/cost_model/runtime/pytorch_layers/huggingface.hpp"
#include "cost_model/answer/step_time.hpp"
#include "cost_model/runtime/fsdp2/recipe.hpp"
#include "tests/catch.hpp"
#include "tests/cost_model/network/loads.hpp"
#include "tests/tracked.hpp"

using namespace zeroplan;
using tests::problem_of;
using tests::Tracked;
using tests::tracked_mib;

// 128,256 logits a token, in 16 bits and in 32.
TEST_CASE("one block computes the loss, and few layers peak there") {
  Problem p = tests::problem(Runtime::ddp, "llama3-8b", {.dp = 8}, "H100-80GB");
  p.model.layers = 2;
  CHECK(estimate(p, Evaluator(p)).peak().phase == Phase::loss);
  p.model.vocab_size = 1'024;
  p.model.layers = 16;
  CHECK(estimate(p, Evaluator(p)).peak().phase == Phase::backward);
}

TEST_CASE("a rank alone has no buckets and reduces nothing") {
  using enum Recompute;
  const Tracked run =
      GENERATE(Tracked{Runtime::ddp, "llama3-8b", 4, 1, 4096, 1, none, 34'628.6},
               Tracked{Runtime::ddp, "llama3-8b", 4, 1, 4096, 1, full, 30'168.6},
               Tracked{Runtime::ddp, "llama3.2-1b", 16, 1, 2048, 1, full, 20'861.1 - 1002});
  Problem p = problem_of(run);
  CAPTURE(run.model, name_of(run.recompute));
  const double mib = tracked_mib(p);
  // Less, of the tied model, a third tensor for the gradients of its table: autograd adds them in
  // place where no tracker watches.
  CHECK(mib == Approx(run.mib).epsilon(0.025));
  p.runtime.ddp.gradient_as_bucket_view = !p.runtime.ddp.gradient_as_bucket_view;
  CHECK(tracked_mib(p) == mib);
  CHECK(tests::loads_of(p).empty());
  CHECK(step_time(p, Evaluator(p)).exposed == 0);
}

TEST_CASE("accelerate wraps the embedding, and norm and head, which stay gathered") {
  using enum Recompute;
  const Tracked run =
      GENERATE(Tracked{Runtime::fsdp2, "llama3-8b", 4, 8, 4096, 1, none, 13'033.3},
               Tracked{Runtime::fsdp2, "llama3-8b", 4, 8, 4096, 1, full, 10'023.2},
               Tracked{Runtime::fsdp2, "llama3-8b", 8, 8, 8192, 2, full, 30'589.4},
               Tracked{Runtime::fsdp2, "llama3-8b", 4, 8, 1024, 1, full, 6'072.1},
               Tracked{Runtime::fsdp2, "qwen2.5-7b", 4, 8, 4096, 1, none, 14'696.3},
               Tracked{Runtime::fsdp2, "qwen2.5-7b", 4, 64, 4096, 1, full, 8'755.2},
               Tracked{Runtime::fsdp2, "qwen2.5-0.5b", 24, 8, 2048, 2, none, 13'499.2});
  CAPTURE(run.model, run.sequence, name_of(run.recompute));
  CHECK(tracked_mib(problem_of(run)) == Approx(run.mib).epsilon(0.01));
}

TEST_CASE("accelerate keeps all that it gathered where it is told not to reshard") {
  Problem p = problem_of({Runtime::fsdp2, "llama3-8b", 4, 8, 4096, 1, Recompute::none, 15'699.4});
  p.layout.zero = ZeroStage::gradients;
  CHECK(tracked_mib(p) == Approx(15'699.4).epsilon(0.01));
}

TEST_CASE("accelerate before 1.14 left embedding, norm and head to the root") {
  struct Run {
    Recompute recompute;
    Logits logits;
    double mib;
  };
  using enum Recompute;
  const Run run = GENERATE(Run{none, Logits::dropped, 14'451.3}, Run{none, Logits::kept, 15'453.3},
                           Run{full, Logits::dropped, 11'441.2});
  Problem p = problem_of({Runtime::fsdp2, "llama3-8b", 4, 8, 4096, 1, run.recompute, run.mib});
  p.runtime.fsdp2.accelerate_version = 113;
  p.runtime.fsdp2.logits = run.logits;
  CHECK(tracked_mib(p) == Approx(run.mib).epsilon(0.005));
}

TEST_CASE("a loop that keeps the model's output keeps its logits") {
  Problem p = problem_of({Runtime::fsdp2, "llama3-8b", 4, 8, 4096, 1, Recompute::none, 14'035.3});
  p.runtime.fsdp2.logits = Logits::kept;
  CHECK(tracked_mib(p) == Approx(14'035.3).epsilon(0.005));
}

TEST_CASE("accelerate's policy reduces gradients in the format of the gathered weights") {
  using enum Recompute;
  const Tracked run =
      GENERATE(Tracked{Runtime::fsdp2, "mixtral-8x7b", 2, 8, 4096, 1, full, 14'734.8},
               Tracked{Runtime::fsdp2, "mixtral-8x7b", 2, 64, 4096, 1, full, 69'595.9});
  Problem p = problem_of(run);
  CHECK(tracked_mib(p) == Approx(run.mib).epsilon(0.03));
  const auto reduced = [](const Problem& q) {
    return tests::sent(tests::loads_of(q), [](const CollectiveLoad& load) {
      return load.collective == Collective::reduce_scatter;
    });
  };
  const std::int64_t narrow = reduced(p);
  p.runtime.fsdp2.reduce_format = ReduceFormat::fp32;
  CHECK(2 * narrow == reduced(p));
}

TEST_CASE("accelerate reduces in fp32 where it is told to") {
  Problem p = problem_of({Runtime::fsdp2, "llama3-8b", 4, 8, 1024, 1, Recompute::full, 6'674.1});
  p.runtime.fsdp2.reduce_format = ReduceFormat::fp32;
  CHECK(tracked_mib(p) == Approx(6'674.1).epsilon(0.01));
}

TEST_CASE("Trainer keeps whole gradients until the last micro-batch") {
  struct Run {
    std::int64_t sequence, steps;
    Recompute recompute;
    ReduceFormat reduced;
    double mib;
  };
  using enum Recompute;
  const Run run = GENERATE(Run{4096, 2, none, ReduceFormat::recipe, 16'701.4},
                           Run{4096, 4, full, ReduceFormat::recipe, 13'691.3},
                           Run{1024, 4, full, ReduceFormat::recipe, 9'740.2},
                           Run{1024, 4, full, ReduceFormat::fp32, 13'408.3});
  Problem p =
      problem_of({Runtime::fsdp2, "llama3-8b", 4, 8, run.sequence, 1, run.recompute, run.mib});
  const auto reduced = [&] {
    return tests::sent(tests::loads_of(p), [](const CollectiveLoad& load) {
      return load.collective == Collective::reduce_scatter;
    });
  };
  const std::int64_t once = reduced();
  p = tests::accumulating(p, run.steps);
  p.runtime.fsdp2.reduce_format = run.reduced;
  CHECK(tracked_mib(p) == Approx(run.mib).epsilon(0.01));
  CHECK(reduced() == (run.reduced == ReduceFormat::fp32 ? 2 : 1) * once);

  p.runtime.fsdp2.reduce_format = ReduceFormat::recipe;
  p.runtime.fsdp2.sync_each_batch = true;
  CHECK(reduced() == run.steps * once);
}

TEST_CASE("each micro-batch reduces its gradients where it is told to") {
  Problem p = problem_of({Runtime::fsdp2, "llama3-8b", 4, 8, 4096, 1, Recompute::full, 10'940.2});
  p = tests::accumulating(p, 4);
  p.runtime.fsdp2.sync_each_batch = true;
  CHECK(tracked_mib(p) == Approx(10'940.2).epsilon(0.005));
}

TEST_CASE("grouped keys and values are repeated for eager attention, and before 4.54") {
  Problem p = problem_of({Runtime::fsdp2, "llama3-8b", 4, 8, 4096, 1, Recompute::none, 0});
  CHECK_FALSE(fsdp2_recipe(p).code.style.repeats_keys);
  p.runtime.fsdp2.transformers_version = 453;
  CHECK(fsdp2_recipe(p).code.style.repeats_keys);
  p.runtime.fsdp2.transformers_version = 523;
  p.training.attention = AttentionKernel::unfused;
  CHECK(fsdp2_recipe(p).code.style.repeats_keys);
}

TEST_CASE("GPT-2's GELU keeps what its operators multiply, in fp32 under autocast") {
  const Tracked run =
      GENERATE(Tracked{Runtime::fsdp2, "gpt2-xl", 12, 8, 1024, 4, Recompute::none, 7'388.1},
               Tracked{Runtime::ddp, "gpt2-xl", 12, 1, 1024, 4, Recompute::none, 14'716.1});
  Problem p = problem_of(run);
  CHECK(tracked_mib(p) == Approx(run.mib).epsilon(0.012));
  // A tanh, half the input, the tanh plus one; under autocast the input in fp32 instead of 16 bits.
  // Bloom's three projections then have a copy of their input each, where GPT-2 has one.
  const double with = tracked_mib(p);
  p.model.family = "bloom";
  const double tokens = 12. * 4 * 1024 / mebi;
  const double more = run.runtime == Runtime::ddp ? 12 * 6400 - 2 * 2 * 1600 : 6 * 6400;
  CHECK(with - tracked_mib(p) == Approx(more * tokens).epsilon(0.001));
}

TEST_CASE("squared ReLU keeps what is positive and its square, under autocast in fp32 too") {
  const Tracked run =
      GENERATE(Tracked{Runtime::fsdp2, "nemotron4-15b", 4, 8, 4096, 1, Recompute::none, 25'773.2},
               Tracked{Runtime::ddp, "nemotron4-15b", 4, 8, 4096, 1, Recompute::none, 95'183.2});
  Problem p = problem_of(run);
  CHECK(tracked_mib(p) == Approx(run.mib).epsilon(0.001));
  // GELU's kernel keeps its input instead of what is positive of it, and nothing in fp32.
  const double with = tracked_mib(p);
  p.model.mlp.squared_relu = false;
  const double wide = run.runtime == Runtime::ddp ? 4 * 2. * 2 * 4096 * 24'576 / mebi : 0;
  CHECK(with - tracked_mib(p) == Approx(wide).margin(0.01 * with));
}

TEST_CASE("Gemma 2 caps logits and scores, and weighs in fp32 what its four norms give") {
  using enum Recompute;
  const Tracked run = GENERATE(Tracked{Runtime::fsdp2, "gemma2-2b", 6, 8, 2048, 1, none, 13'248.6},
                               Tracked{Runtime::fsdp2, "gemma2-2b", 6, 8, 4096, 1, full, 16'903.2});
  Problem p = problem_of(run);
  p.training.attention = AttentionKernel::unfused;
  CHECK(tracked_mib(p) == Approx(run.mib).epsilon(0.015));
}

// transformers v5.24.0 models/olmo2/modeling_olmo2.py: its tables stay in fp32, which FSDP2 casts
// for each layer, 2 x 2 bytes for each feature of a head.
TEST_CASE("FSDP2 casts OLMo's rotary tables for each layer, and nothing else does") {
  Problem p = problem_of({Runtime::fsdp2, "olmo2-7b", 4, 8, 4096, 1, Recompute::none, 0});
  CHECK(fsdp2_recipe(p).casts_rotary);
  CHECK_FALSE(fsdp2_recipe(p).code.style.turns_wide);
  const double casting = tracked_mib(p);
  p.model.family = "exaone4";  // whose tables are of 16 bits; what its norms keep is narrower
  CHECK_FALSE(fsdp2_recipe(p).casts_rotary);
  CHECK(casting > tracked_mib(p));
  p.model.family = "olmo2";
  CHECK(huggingface_code(p, false).style.turns_wide);
  p.training.precision = Precision::fp32;
  CHECK_FALSE(huggingface_code(p, false).style.turns_wide);
}

// What PyTorch 2.14.1 and 2.15.0 took of the same runs, with transformers 5.24.0. Since 2.15 the
// last gradient of a unit goes before its reduction has its output, and those that add up do so at
// once.
TEST_CASE("PyTorch 2.15 holds less of FSDP2's gradients than 2.14") {
  struct Run {
    Tracked run;
    std::int64_t steps;
    Logits logits;
    ReduceFormat reduced;
    double of_2_14, of_2_15;
  };
  using enum Recompute;
  const auto& [run, steps, logits, reduced, before, since] =
      GENERATE(Run{{Runtime::fsdp2, "mistral-nemo-12b", 3, 8, 512, 1, none, 0},
                   1,
                   Logits::dropped,
                   ReduceFormat::fp32,
                   8'093.6,
                   7'807.5},
               Run{{Runtime::fsdp2, "llama2-7b", 4, 16, 512, 1, full, 0},
                   2,
                   Logits::kept,
                   ReduceFormat::fp32,
                   6'143.5,
                   5'897.3});
  Problem p = tests::accumulating(problem_of(run), steps);
  p.runtime.fsdp2.logits = logits;
  p.runtime.fsdp2.reduce_format = reduced;
  p.runtime.fsdp2.torch_version = 215;
  CAPTURE(run.model);
  CHECK(tracked_mib(p) == Approx(since).epsilon(0.003));
  p.runtime.fsdp2.torch_version = 214;
  CHECK(tracked_mib(p) == Approx(before).epsilon(0.007));
}

// Its outputs, which a loop's variable holds until the micro-batch is done.
TEST_CASE("logits that are kept outlive the loss") {
  Problem p = problem_of({Runtime::fsdp2, "llama2-7b", 4, 2, 2048, 1, Recompute::full, 0});
  p.runtime.fsdp2.reduce_format = ReduceFormat::fp32;
  p.runtime.fsdp2.logits = Logits::kept;
  CHECK(tracked_mib(p) == Approx(9'684.6).epsilon(0.001));
  const double kept = tracked_mib(p);
  p.runtime.fsdp2.logits = Logits::dropped;
  CHECK(kept - tracked_mib(p) == Approx(2. * 2048 * 32'000 / mebi));
}

TEST_CASE("layers of Transformers that are no Llama keep what their own code keeps") {
  using enum Recompute;
  // Views of one projection; halves side by side; a ReLU's result alone.
  const Tracked run =
      GENERATE(Tracked{Runtime::fsdp2, "pythia-1.4b", 8, 16, 2048, 2, none, 5'721.6},
               Tracked{Runtime::fsdp2, "phi-2", 4, 16, 4096, 2, none, 10'667.6},
               Tracked{Runtime::fsdp2, "opt-1.3b", 8, 2, 2048, 2, none, 7'444.4});
  Problem p = problem_of(run);
  CAPTURE(run.model);
  p.runtime.fsdp2.logits = Logits::kept;
  CHECK(tracked_mib(p) == Approx(run.mib).epsilon(0.001));
}

// Bytes of one layer more or less, counted by hand; sequences of as many tokens as the window has.
TEST_CASE("a layer that SDPA gives a mask keeps it, and keys and values for each query head") {
  Problem p = problem_of({Runtime::fsdp2, "mistral-7b", 4, 8, 4096, 1, Recompute::none, 0});
  p.layout.zero = ZeroStage::gradients;
  const auto masked = [&] {
    Problem whole = p;
    whole.model.attention.windowed_layers = 0;
    p.model.attention.windowed_layers = p.model.layers;
    return tracked_mib(p) - tracked_mib(whole);
  };
  // 16 bits of 4096 x 4096, and 24 more heads of 128 twice; but for the tensors of a peak
  // elsewhere.
  CHECK(masked() == Approx(4 * (32 + 2 * 24)).epsilon(0.01));
  p.training.sequence_length = 4095;
  CHECK(masked() == 0);
  p.training.sequence_length = 4096;
  p.layout.recompute = Recompute::full;
  CHECK(masked() == Approx(16).epsilon(0.01));  // of truths, a byte each, at the loss
  p.layout.recompute = Recompute::none;
  p.model.attention.kv_heads = 1;  // which is seen as many without a copy
  CHECK(masked() == Approx(4 * 32).epsilon(0.01));
}

// transformers 5.24.0 integrations/flash_attention.py.
TEST_CASE("the package flash-attn needs no mask, and values as wide as queries") {
  const auto with_package = [](Problem p) {
    p.runtime.attn_implementation = AttnImplementation::flash_attention_2;
    return tracked_mib(p);
  };
  Problem windows = problem_of({Runtime::fsdp2, "mistral-7b", 4, 8, 8192, 1, Recompute::none, 0});
  Problem whole = windows;
  whole.model.attention.windowed_layers = 0;
  CHECK(with_package(windows) == tracked_mib(whole));
  CHECK(with_package(windows) < tracked_mib(windows));

  // In each layer instead of values of 128 a head, of 192, and an output of 192 beside its copy
  // of 128; keys and values of one projection are no longer kept.
  const Problem latent =
      problem_of({Runtime::fsdp2, "deepseek-v2-lite", 5, 8, 4096, 1, Recompute::none, 0});
  const double head = 2. * 16 * 4096 / mebi;
  CHECK(with_package(latent) - tracked_mib(latent) ==
        Approx(5 * head * (192 - 256 + 192 - 128)).margin(0.01));
}

TEST_CASE(
    "eager attention adds masks of 16 bits, one for each sort of layer, which checkpoints keep") {
  Problem p = problem_of({Runtime::fsdp2, "gemma2-2b", 4, 8, 4096, 2, Recompute::full, 0});
  p.training.attention = AttentionKernel::unfused;
  const auto of_windows = [&] {
    Problem whole = p;
    whole.model.attention.windowed_layers = 0;
    p.model.attention.windowed_layers = 2;
    return tracked_mib(p) - tracked_mib(whole);
  };
  CHECK(of_windows() == Approx(2 * 32));
  p.layout.recompute = Recompute::none;
  CHECK(of_windows() == 0);
}
