// What fit answers is what it answers when asked about that answer.
#include "planner/fit.hpp"

#include <bit>
#include <random>

#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

// The same question with the answer's layout given, and what the runtime was set to for it.
Request with_layout_of(Request r, const Problem& answer) {
  const Layout& l = answer.layout;
  r.runtime = answer.runtime;
  r.offload = l.offload;
  r.tp = l.tp;
  r.pp = l.pp;
  r.vpp = l.vpp;
  r.cp = l.cp;
  r.ep = l.ep;
  r.etp = l.etp;
  r.hsdp = l.hsdp;
  r.zero = l.zero;
  r.recompute = l.recompute;
  r.schedule = l.schedule;
  r.micro_batch = l.micro_batch;
  r.sequence_parallel = l.sequence_parallel;
  return r;
}

Request on(Request r, std::int64_t gpus) {
  r.cluster.gpus = gpus;
  return r;
}

// Nothing where the runtime cannot execute it.
std::optional<Verdict> verdict_of(const Request& request) {
  const auto answer = fit(request);
  if (!std::holds_alternative<FitAnswer>(answer)) return std::nullopt;
  return std::get<FitAnswer>(answer).estimate.verdict;
}

template <class T>
T pick(std::mt19937& random, std::initializer_list<T> values) {
  return *(values.begin() + random() % values.size());
}

Request random_request(Runtime runtime, OptimizerKind optimizer, std::mt19937& random) {
  const auto model = pick<std::string_view>(
      random, {"llama3-8b", "llama3-70b", "qwen2.5-7b", "bloom-7b1", "deepseek-v2-lite"});
  const auto gpu = pick<std::string_view>(random, {"A100-40GB", "A100-80GB", "H100-80GB"});
  Request r{.model = find_model(model).spec,
            .cluster = cluster_of(gpu, pick<std::int64_t>(random, {2, 4, 8, 16, 32})),
            .runtime = load_runtime(runtime, {})};
  r.optimizer = optimizer;
  r.micro_batch = pick<std::int64_t>(random, {1, 1, 2, 4});
  r.precision = pick(random, {Precision::bf16, Precision::fp16});
  if (random() % 2 == 0) r.sequence_length = pick<std::int64_t>(random, {1024, 2048, 8192});
  return r;
}

}  // namespace

TEST_CASE("what fit answers holds when it is asked about", "[fit]") {
  const auto runtime =
      GENERATE(Runtime::megatron, Runtime::fsdp2, Runtime::deepspeed, Runtime::nanotron);
  const auto optimizer = GENERATE(OptimizerKind::sgd, OptimizerKind::adam, OptimizerKind::adam8bit);
  // Sanitized is that whose waste was once guessed: all run the same code.
  if (tests::sanitized && optimizer != OptimizerKind::sgd) return;
  std::mt19937 random(31);
  for (int i = 0; i < tests::draws(8); ++i) {
    const Request request = random_request(runtime, optimizer, random);
    CAPTURE(name_of(runtime), name_of(optimizer), request.model.name, request.cluster.gpu.name,
            request.cluster.gpus, *request.micro_batch, name_of(*request.precision),
            request.sequence_length.value_or(0));
    const auto answer = fit(request);
    if (!std::holds_alternative<FitAnswer>(answer)) continue;
    const auto& chosen = std::get<FitAnswer>(answer);

    // Given the layout that was chosen, the verdict is the same.
    REQUIRE(verdict_of(with_layout_of(request, chosen.problem)) == chosen.estimate.verdict);
    if (chosen.estimate.verdict == Verdict::fits) {
      REQUIRE(chosen.fewest_gpus.has_value());
      REQUIRE(*chosen.fewest_gpus <= request.cluster.gpus);
    }
    if (!chosen.fewest_gpus) continue;
    const std::int64_t fewest = *chosen.fewest_gpus;
    CAPTURE(fewest);
    REQUIRE(verdict_of(on(request, fewest)) == Verdict::fits);
    if (fewest % 2 == 0) REQUIRE(verdict_of(on(request, fewest / 2)) != Verdict::fits);
  }
}

// Five nodes, and twelve, of which eleven would be tried before.
TEST_CASE("the fewest GPUs are those that fit where a node less does not", "[fit]") {
  const auto [model, gpu] = GENERATE(table<std::string_view, std::string_view>(
      {{"llama3-70b", "A100-40GB"}, {"llama3.1-405b", "H100-80GB"}}));
  Request asked{.model = find_model(model).spec,
                .cluster = cluster_of(gpu, 2048),
                .runtime = load_runtime(Runtime::megatron, {})};
  asked.sequence_length = 4096;
  const std::int64_t fewest = std::get<FitAnswer>(fit(asked)).fewest_gpus.value();
  CAPTURE(model, fewest);
  CHECK_FALSE(std::has_single_bit(static_cast<std::uint64_t>(fewest)));
  CHECK(verdict_of(on(asked, fewest)) == Verdict::fits);
  CHECK(verdict_of(on(asked, fewest - asked.cluster.gpus_per_node)) != Verdict::fits);
}

TEST_CASE("fewest GPUs are counted where no part of the layout is given", "[fit]") {
  const Request open{.model = find_model("llama3-8b").spec,
                     .cluster = cluster_of("H100-80GB", 8),
                     .runtime = load_runtime(Runtime::megatron, {})};
  const auto counted = [](const Request& request) {
    return std::get<FitAnswer>(fit(request)).fewest_gpus.has_value();
  };
  CHECK(counted(open));
  using Degree = std::optional<std::int64_t> Request::*;
  for (const Degree degree :
       {&Request::tp, &Request::pp, &Request::vpp, &Request::cp, &Request::ep, &Request::etp}) {
    Request given = open;
    given.*degree = 1;
    CHECK_FALSE(counted(given));
  }
  Request given = open;
  given.zero = ZeroStage::optimizer;
  CHECK_FALSE(counted(given));
  given = open;
  given.recompute = Recompute::full;
  CHECK_FALSE(counted(given));
  given = open;
  given.schedule = Schedule::one_f_one_b;
  CHECK_FALSE(counted(given));
}

TEST_CASE("a layout whose tensors alone would fit is not chosen where the replay refuses it",
          "[fit]") {
  const Request request{.model = find_model("llama3-8b").spec,
                        .cluster = cluster_of("A100-80GB", 8),
                        .runtime = load_runtime(Runtime::megatron, {})};
  const auto roomy = std::get<FitAnswer>(fit(request));
  REQUIRE(roomy.estimate.verdict == Verdict::fits);
  // A device with room for the first choice's tensors and for none of what the allocator wastes.
  Request narrow = request;
  narrow.cluster.gpu.memory = roomy.estimate.high -
                              roomy.estimate.peak().memory[Category::fragmentation] +
                              Bytes{gibi / 10};
  Problem first = roomy.problem;
  first.cluster = narrow.cluster;
  const Evaluator evaluator(first);
  REQUIRE(floor_of_replay(first, evaluator).verdict == Verdict::fits);
  REQUIRE(played_estimate(first, evaluator).verdict != Verdict::fits);

  const auto answer = std::get<FitAnswer>(fit(narrow));

  REQUIRE(answer.estimate.verdict == Verdict::fits);
  REQUIRE(answer.problem.layout != roomy.problem.layout);
}

TEST_CASE("a stage of ZeRO that is not tried first is taken where it alone fits", "[fit]") {
  // DeepSpeed without ZeRO needs no buckets for what one replica holds whole.
  Request r{.model = find_model("llama3-8b").spec,
            .cluster = cluster_of("V100-32GB", 8),
            .runtime = load_runtime(Runtime::deepspeed, {{"reduce_bucket_size", "2000000000"}})};
  r.given_settings = {"reduce_bucket_size", "overlap_comm"};
  r.offload = Offload::none;
  r.precision = Precision::fp16;
  r.tp = 1;
  r.pp = 8;
  r.micro_batch = 1;
  r.global_batch = 64;
  r.recompute = Recompute::full;
  const auto answer = std::get<FitAnswer>(fit(r));
  CHECK(answer.estimate.verdict == Verdict::fits);
  CHECK(answer.problem.layout.zero == ZeroStage::none);
  r.zero = ZeroStage::optimizer;
  CHECK(verdict_of(r) == Verdict::tight);
}
