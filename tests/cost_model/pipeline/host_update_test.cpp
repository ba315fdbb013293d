#include "cost_model/pipeline/host_update.hpp"

#include "cost_model/answer/step_time.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

Problem offloaded(std::string_view gpu, std::int64_t gpus, Offload offload = Offload::optimizer) {
  Problem p{.model = find_model("llama3-8b").spec,
            .cluster = cluster_of(gpu, gpus),
            .runtime = load_runtime(Runtime::deepspeed, {}),
            .layout = {.dp = gpus, .zero = ZeroStage::gradients, .offload = offload}};
  p.training.sequence_length = 2048;
  p.training.global_batch = gpus;
  return p;
}

}  // namespace

// ZeRO-Offload, Table 4: one process updates on all of a DGX-2's memory channels.
TEST_CASE("CPU-Adam updates at the pace that ZeRO-Offload published") {
  Problem p = offloaded("V100-32GB", 1);
  p.training.precision = Precision::fp16;
  const std::pair<std::int64_t, double> rows[] = {
      {1'000'000'000, 0.22}, {2'000'000'000, 0.51}, {4'000'000'000, 1.03}, {10'000'000'000, 2.57}};
  for (const auto& [parameters, seconds] : rows) {
    const double sent = static_cast<double>(parameters) * 4 / 16e9;
    REQUIRE(host_update_seconds(p, parameters) - sent == Approx(seconds).epsilon(0.2));
  }
}

TEST_CASE("momentum alone takes the host less than two moments") {
  Problem p = offloaded("A100-80GB", 1);
  const std::int64_t parameters = 1'000'000'000;
  const double adam = host_update_seconds(p, parameters);
  p.training.optimizer = OptimizerKind::sgd;
  REQUIRE(host_update_seconds(p, parameters) < adam);
}

TEST_CASE("the ranks of a node share its memory") {
  const Problem one = offloaded("A100-80GB", 1);
  const Problem eight = offloaded("A100-80GB", 8);
  const Problem nodes = offloaded("A100-80GB", 64);
  constexpr std::int64_t all = 8'000'000'000;
  REQUIRE(host_update_seconds(eight, all / 8) > 0.9 * host_update_seconds(one, all) / 1.5);
  REQUIRE(host_update_seconds(eight, all / 8) < host_update_seconds(one, all));
  REQUIRE(host_update_seconds(nodes, all / 64) == Approx(host_update_seconds(eight, all / 8) / 8));
}

// DeepSpeed pull request 7474: 3.1 billion parameters on two A100s and a host of 128 cores, where
// "significant time is spent on CPUAdam".
TEST_CASE("an update on the host is a good part of a short step, and no more than one measured") {
  Problem p = offloaded("A100-40GB", 2);
  const double update = host_update_seconds(p, 3'090'000'000 / 2);
  REQUIRE(update > 0.1 * 2.383);
  REQUIRE(update < 2.383);
}

TEST_CASE("offload makes a step longer by what the host takes") {
  const Problem there = offloaded("A100-80GB", 8);
  const Problem here = offloaded("A100-80GB", 8, Offload::none);
  const Evaluator evaluator(there);
  const StepTime with = step_time(there, evaluator);
  const StepTime without = step_time(here, evaluator);
  REQUIRE(with.optimizer == Approx(host_update_seconds(there, 8'030'261'248 / 8)).epsilon(0.01));
  REQUIRE(with.seconds - without.seconds ==
          Approx(with.optimizer - without.optimizer).epsilon(0.01));
}
