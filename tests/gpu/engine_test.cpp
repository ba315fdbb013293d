// Whole steps on one GPU: however ZeRO divides the states, the same numbers come out, and all
// memory is accounted for.
#include <cstring>

#include "cost_model/legality/legality.hpp"
#include "tests/catch.hpp"
#include "tests/validator/tiny.hpp"
#include "validator/cuda/gpu_validation.hpp"
#include "validator/cuda/run.hpp"

using namespace zeroplan;
using namespace zeroplan::engine;

namespace {

void require_agreement(const Problem& p) {
  CAPTURE(p.model.name, p.layout.dp, p.layout.tp, p.layout.pp);
  REQUIRE_FALSE(first_violation(p));
  const GpuValidation result =
      validate_on_gpus({p, {}}, {p, {}}, [](const Problem& problem, Asked asked) {
        return run_on_one_gpu(problem, timed_where({}, asked));
      });
  for (const ComparedRank& rank : result.validation.ranks) CHECK(rank.agrees());
  for (const ComparedStage& stage : result.validation.stages) {
    CAPTURE(name_of(stage.zero));
    CHECK(stage.expected);
    CHECK(stage.losses_equal);
    CHECK(stage.parameters_equal);
  }
  const StepSeconds& measured = result.validation.time.measured;
  CHECK(measured.products > 0);
  CHECK(measured.products < measured.step);
  for (const Closing& closing : result.closings) {
    CAPTURE(closing.used.count(), closing.unaccounted().count(), closing.allowed().count());
    CHECK(closing.closes());
  }
}

}  // namespace

TEST_CASE("loopback ranks of ZeRO 0 to 3 agree bit for bit and with their prediction") {
  for (const std::int64_t dp : {1, 2, 3, 4, 8}) {
    require_agreement(tests::tiny_problem(tests::tiny_llama(), {.dp = dp}));
  }
  require_agreement(tests::tiny_problem(tests::tiny_gpt(), {.dp = 4}));
}

TEST_CASE("and with tensor and pipeline parallelism, on a GPU") {
  for (const auto& [tp, pp] : {std::pair<std::int64_t, std::int64_t>{2, 1}, {1, 2}, {2, 2}}) {
    require_agreement(tests::tiny_problem(tests::tiny_llama(), {.dp = 2, .tp = tp, .pp = pp}));
    require_agreement(tests::tiny_problem(tests::tiny_gpt(), {.dp = 2, .tp = tp, .pp = pp}));
  }
}

TEST_CASE("and with sequence parallelism and a tied head, on a GPU") {
  for (const std::int64_t pp : {1, 2}) {
    const Layout split{.dp = 2, .tp = 2, .pp = pp, .sequence_parallel = true};
    require_agreement(tests::tiny_problem(tests::tied(tests::tiny_gpt()), split));
    require_agreement(tests::tiny_problem(tests::tied(tests::tiny_llama()), split));
  }
}

TEST_CASE("the engine's settings allocate and send what is predicted, on a GPU") {
  for (const ZeroplanSettings& set : tests::engine_settings(Recompute::full)) {
    Problem p = tests::tiny_problem(
        tests::tiny_gpt(),
        {.dp = 2, .tp = 2, .pp = 2, .zero = ZeroStage::parameters, .recompute = Recompute::full},
        3);
    p.runtime.zeroplan = set;
    CAPTURE(set.prefetch, set.partition_activations, set.reduce_bucket_size,
            set.contiguous_memory_optimization, set.overlap_comm);
    REQUIRE_FALSE(first_violation(p));
    const Evaluator evaluator(p);
    for (const RankReport& rank : run_on_one_gpu(p, {}).report.ranks) {
      CHECK(compared(p, evaluator, rank).agrees());
    }
  }
}

TEST_CASE("the GPU's losses are the host's, but for rounding") {
  for (const ModelSpec& model : {tests::tiny_llama(), tests::tiny_gpt()}) {
    const Problem p = tests::tiny_problem(model, {.dp = 2, .micro_batch = 2}, 2);
    const auto host = run_on_host(p, {}).losses();
    const auto gpu = run_on_one_gpu(p, {}).report.losses();
    REQUIRE(gpu.size() == host.size());
    for (std::size_t i = 0; i < host.size(); ++i) {
      CHECK(gpu[i] == Approx(host[i]).epsilon(5e-3));
    }
  }
}

TEST_CASE("a rank of many allocates what is predicted, with its peers absent") {
  Layout layout{.dp = 32, .tp = 2, .pp = 2, .zero = ZeroStage::parameters};
  Problem p = tests::tiny_problem(tests::tiny_llama(), layout, 4);
  REQUIRE_FALSE(first_violation(p));
  RunOptions options;
  options.steps = 2;
  for (std::int64_t stage = 0; stage < layout.pp; ++stage) {
    const GpuRun run = run_as_rank(p, {.tp = 0, .dp = 0, .pp = stage}, options);
    CHECK(compared(p, Evaluator(p), run.report.ranks.at(0)).agrees());
    CHECK(run.closings.at(0).closes());
  }
}
