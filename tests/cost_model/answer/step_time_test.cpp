#include "cost_model/answer/step_time.hpp"

#include <random>

#include "cost_model/kernel/memory_bound.hpp"
#include "cost_model/network/collective_time.hpp"
#include "cost_model/network/topology.hpp"
#include "cost_model/pipeline/pipeline.hpp"
#include "cost_model/pipeline/sharding_copies.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

double seconds_of(const Problem& p) {
  return step_time(p, Evaluator(p)).seconds;
}

std::vector<StageTime> equal_stages(std::int64_t ranks, std::int64_t chunks) {
  StageTime stage;
  stage.chunks.assign(static_cast<std::size_t>(chunks),
                      {.forward = 1, .input_gradient = 1, .weight_gradient = 1});
  return std::vector<StageTime>(static_cast<std::size_t>(ranks), stage);
}

}  // namespace

TEST_CASE("the bubble of equal stages is (p - 1) / m, and v times less with v chunks") {
  for (const std::int64_t pp : {2, 4, 8, 16}) {
    for (const std::int64_t v : {1, 2, 3}) {
      for (const std::int64_t rounds : {1, 2, 5, 16, 100}) {
        const std::int64_t m = rounds * pp;
        Problem p = problem(Runtime::megatron, "llama3-8b", {.pp = pp, .vpp = v});
        if (v > 1) p.layout.schedule = Schedule::interleaved;
        p.training.global_batch = m;
        const PipelineTime time = simulate_pipeline(p, equal_stages(pp, v), 0);
        const auto work = static_cast<double>(3 * v * m);
        CAPTURE(pp, v, m);
        REQUIRE(time.seconds / work - 1 ==
                Approx(static_cast<double>(pp - 1) / static_cast<double>(v * m)));
        for (const RankTime& rank : time.ranks) REQUIRE(rank.busy == Approx(work));
      }
    }
  }
}

TEST_CASE("the slowest stage sets the pace, and the others have slack") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.pp = 4});
  p.training.global_batch = 12;
  std::vector<StageTime> stages = equal_stages(4, 1);
  stages[2].chunks[0].forward = 2;
  const PipelineTime time = simulate_pipeline(p, stages, 0);
  // Two forward passes before it, its twelve micro-batches of 4, two backward passes after it; at
  // each end of the step it waits 1 for the last stage.
  REQUIRE(time.seconds == Approx(2 * 1 + 12 * 4 + 2 * 2 + 2 * 1));
  REQUIRE(time.ranks[2].slack == Approx(0).margin(1e-9));
  REQUIRE(time.ranks[0].busy == Approx(36));
}

TEST_CASE("a step's parts add up, over random legal layouts") {
  std::mt19937 random(20261121);
  for (int i = 0; i < tests::draws(300);) {
    const std::optional<Problem> p = tests::Draw(random).problem();
    if (!p) continue;
    ++i;
    const StepTime time = step_time(*p, Evaluator(*p));
    CAPTURE(name_of(p->runtime.kind), p->model.name, p->layout.tp, p->layout.pp, p->layout.vpp,
            name_of(p->layout.schedule), name_of(p->layout.zero));
    REQUIRE(time.seconds > 0);
    REQUIRE(time.computed > 0);
    REQUIRE(time.exposed >= -1e-9 * time.seconds);
    REQUIRE(time.bubble >= 0);
    REQUIRE(time.exposed >= 0);
    REQUIRE(time.computed + time.exposed + time.bubble + time.straggling == Approx(time.seconds));
    REQUIRE(time.flops.hardware >= time.flops.model);
    REQUIRE(mfu(*p, time) < 1);
  }
}

TEST_CASE("what collectives are said to add is what the step waits for") {
  using enum ZeroStage;
  for (const auto& [runtime, zero] : {std::pair{Runtime::megatron, optimizer},
                                      {Runtime::megatron, parameters},
                                      {Runtime::fsdp2, parameters},
                                      {Runtime::ddp, none},
                                      {Runtime::deepspeed, optimizer},
                                      {Runtime::deepspeed, gradients},
                                      {Runtime::deepspeed, parameters},
                                      {Runtime::nanotron, optimizer},
                                      {Runtime::zero_paper, gradients},
                                      {Runtime::zeroplan, none},
                                      {Runtime::zeroplan, gradients},
                                      {Runtime::zeroplan, parameters}}) {
    Problem p = tests::problem(runtime, "llama3-8b", {.dp = 8, .zero = zero}, "H100-80GB");
    p.training.sequence_length = 8192;
    const StepTime time = step_time(p, Evaluator(p));
    CAPTURE(name_of(runtime), name_of(zero));
    REQUIRE(time.exposed > 0);
    REQUIRE(time.exposed == Approx(time.stages.front().exposed()));
    REQUIRE(time.seconds == Approx(step_seconds(p, Evaluator(p))));
  }
}

TEST_CASE("faster links never make a step longer, over random legal layouts") {
  std::mt19937 random(7);
  for (int i = 0; i < tests::draws(100);) {
    const std::optional<Problem> drawn = tests::Draw(random).problem();
    if (!drawn) continue;
    ++i;
    Problem p = *drawn;
    double before = seconds_of(p);
    CAPTURE(name_of(p.runtime.kind), p.model.name, p.layout.tp, p.layout.pp, p.layout.dp,
            name_of(p.layout.schedule));
    for (double ClusterSpec::*link :
         {&ClusterSpec::intra_node_bandwidth, &ClusterSpec::inter_node_bandwidth}) {
      p.cluster.*link *= 2;
      const double after = seconds_of(p);
      REQUIRE(after <= before * (1 + 1e-9));
      before = after;
    }
  }
}

// What a rank sends in its collectives' time alone fits through its links.
TEST_CASE("no group sends faster than its links carry, over random legal layouts") {
  std::mt19937 random(11);
  for (int i = 0; i < tests::draws(200);) {
    const std::optional<Problem> p = tests::Draw(random).problem();
    if (!p) continue;
    ++i;
    for (const StageTime& stage : step_time(*p, Evaluator(*p)).stages) {
      for (const TimedLoad& timed : stage.loads) {
        const CommunicationGroup group = placement(p->cluster, timed.load.group);
        const double links = group.intra_node_bandwidth + group.inter_node_bandwidth;
        // A switch that adds does with half of what ranks without it send.
        const auto sent = static_cast<double>(sent_bytes_per_step(timed.load).count()) / 2;
        CAPTURE(timed.load.group.name, name_of(timed.load.collective), timed.load.group.ranks);
        REQUIRE(sent <= timed.seconds * links);
      }
    }
  }
}

TEST_CASE("sends that block cost the ends of a pipeline half of what they cost its middle") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.pp = 4});
  p.training.global_batch = 8;
  const double message = 0.25;
  const PipelineTime without = simulate_pipeline(p, equal_stages(4, 1), 0);
  const PipelineTime time = simulate_pipeline(p, equal_stages(4, 1), message);
  for (const std::size_t rank : {0, 1, 2, 3}) {
    const bool end = rank == 0 || rank == 3;
    REQUIRE(time.ranks[rank].busy - without.ranks[rank].busy ==
            Approx(8 * message * (end ? 1 : 2)));
  }
}

TEST_CASE("trained multi-token-prediction modules make the step longer") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.dp = 2, .tp = 4});
  const double without = seconds_of(p);
  p.runtime.megatron.mtp_num_layers = 1;
  const double one = seconds_of(p);
  // A layer of 32 and a head.
  REQUIRE(one > 1.03 * without);
  REQUIRE(one < 1.2 * without);
}

TEST_CASE("FSDP copies what it gathers and what it reduces") {
  Problem p = tests::problem(Runtime::fsdp2, "llama3-8b", {.dp = 8, .zero = ZeroStage::parameters},
                             "H100-80GB");
  const std::int64_t elements = 1'000'000'000;
  const auto seconds = [&](std::int64_t bytes) {
    return memory_bound_seconds(Bytes{bytes * elements}, Access::streaming, p.cluster.gpu);
  };
  // 16 bits there and into the parameters; gradients from 16 to 32 bits.
  REQUIRE(sharding_copies_seconds(p, elements, During::forward) == Approx(seconds(2 + 2)));
  REQUIRE(sharding_copies_seconds(p, elements, During::backward) == Approx(seconds(2 + 2 + 2 + 4)));
  p.runtime.fsdp2.no_reshard_layers = p.model.layers / 4;  // which are not copied again
  REQUIRE(sharding_copies_seconds(p, elements, During::backward) == Approx(seconds(3 + 2 + 4)));
  p.runtime.fsdp2.no_reshard_layers = 0;
  Problem accelerate = p;
  accelerate.runtime.fsdp2.layers = LayerCode::huggingface;
  REQUIRE(sharding_copies_seconds(accelerate, elements, During::backward) ==
          Approx(seconds(2 + 2 + 2 + 2)));
  p.layout.zero = ZeroStage::gradients;  // parameters stay gathered
  REQUIRE(sharding_copies_seconds(p, elements, During::backward) == Approx(seconds(2 + 4)));
  p.layout.dp = 1;
  REQUIRE(sharding_copies_seconds(p, elements, During::forward) == 0);
}
