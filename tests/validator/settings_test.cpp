// What the engine's settings are for: what each of them saves, or costs.
#include "cost_model/answer/step_time.hpp"
#include "cost_model/legality/legality.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"
#include "validator/device/dry_device.hpp"
#include "validator/ranks.hpp"

using namespace zeroplan;
using namespace zeroplan::engine;

namespace {

// Stage 1 of 4 of a model whose stages have 20 layers, counted: neither embedding nor head.
constexpr std::int64_t layers_of_a_stage = 20;

Problem plan(ZeroStage zero) {
  Problem p =
      tests::problem(Runtime::zeroplan, "llama3-70b",
                     {.dp = 8, .tp = 8, .pp = 4, .zero = zero, .recompute = Recompute::full});
  p.training.global_batch = p.layout.dp * 8;
  return p;
}

RankReport counted(ZeroStage zero, const ZeroplanSettings& set) {
  Problem p = plan(zero);
  p.runtime.zeroplan = set;
  REQUIRE_FALSE(first_violation(p));
  return count_rank(p, {.pp = 1});
}

Bytes peak(const RankReport& rank, Category category) {
  return rank.peak.live[category];
}

// 2 bytes of all weights of a layer of Llama 3 70B on one of 8 tensor-parallel ranks: norms, which
// each holds whole, queries and output, keys and values, MLP; in parts of 256 elements a replica.
constexpr std::int64_t layer_elements =
    2 * 8192 + (2 * 8192 * 8192 + 2 * 1024 * 8192 + 3 * 28672 * 8192) / 8;
constexpr Bytes layer_bytes{2 * ((layer_elements + 2047) / 2048 * 2048)};
constexpr Bytes input_bytes{2L * 4096 * 8192};
constexpr std::int64_t in_flight = 3;  // 1F1B, stage 1 of 4

// What stays between steps under ZeRO 2.
MemoryBreakdown kept_before_steps(const ZeroplanSettings& set) {
  Problem p = plan(ZeroStage::gradients);
  p.runtime.zeroplan = set;
  const Layout& l = p.layout;
  DryDevice device;
  Memory memory(device, {});
  AbsentGroups absent(p, {.pp = 1});
  const Groups groups = absent;
  const Rank rank{memory,      groups.tp,      groups.dp, groups.pp,
                  groups.ends, shape_of(p, 0), l.zero,    set};
  Engine engine(p, {.pp = 1}, rank, {});
  const MemoryBreakdown before = memory.ledger().live();
  engine.step(1);
  REQUIRE(memory.ledger().live() == before);
  return before;
}

}  // namespace

TEST_CASE("prefetch holds one layer more") {
  constexpr auto buffers = Category::communication_buffers;
  const RankReport plain = counted(ZeroStage::parameters, {});
  const RankReport ahead = counted(ZeroStage::parameters, {.prefetch = true});
  REQUIRE(peak(ahead, buffers) == peak(plain, buffers) + layer_bytes);
  REQUIRE(ahead.peak.live.allocated() == plain.peak.live.allocated() + layer_bytes);
}

TEST_CASE("gradients that travel hold one bucket more, and prefetch is not in its way") {
  constexpr auto buffers = Category::communication_buffers;
  const RankReport plain = counted(ZeroStage::gradients, {});
  const RankReport travelling = counted(ZeroStage::gradients, {.overlap_comm = true});
  REQUIRE(peak(travelling, buffers) == peak(plain, buffers) + layer_bytes);
  const RankReport both = counted(ZeroStage::parameters, {.prefetch = true, .overlap_comm = true});
  REQUIRE(peak(both, buffers) ==
          peak(counted(ZeroStage::parameters, {}), buffers) + 2 * layer_bytes);
}

TEST_CASE("what travels beside a pass is waited for less") {
  const auto exposed = [](ZeroStage zero, const ZeroplanSettings& set) {
    Problem p = plan(zero);
    p.runtime.zeroplan = set;
    return step_time(p, Evaluator(p)).exposed;
  };
  const double plain = exposed(ZeroStage::parameters, {});
  const double ahead = exposed(ZeroStage::parameters, {.prefetch = true});
  REQUIRE(ahead < plain);
  REQUIRE(exposed(ZeroStage::parameters, {.prefetch = true, .overlap_comm = true}) < ahead);
  REQUIRE(exposed(ZeroStage::gradients, {.overlap_comm = true}) <
          exposed(ZeroStage::gradients, {}));
  // Nothing of these is asked for there.
  REQUIRE(exposed(ZeroStage::optimizer, {.prefetch = true, .overlap_comm = true}) ==
          exposed(ZeroStage::optimizer, {}));
}

TEST_CASE("what has one bucket refuses gradients that travel") {
  Problem p = plan(ZeroStage::gradients);
  p.runtime.zeroplan = {.reduce_bucket_size = 1000, .overlap_comm = true};
  REQUIRE_THAT(first_violation(p)->reason, ContainsSubstring("overlap_comm keeps a bucket"));
  p.runtime.zeroplan = {.contiguous_memory_optimization = true, .overlap_comm = true};
  REQUIRE(first_violation(p));
}

TEST_CASE("Pa divides checkpoints by tp, and frees the buffers they came in") {
  constexpr auto buffers = Category::communication_buffers;
  const RankReport plain = counted(ZeroStage::none, {});
  const RankReport parts = counted(ZeroStage::none, {.partition_activations = true});
  REQUIRE(peak(plain, buffers) - peak(parts, buffers) == (in_flight - 1) * input_bytes);
  // With MD they can be seen by themselves.
  const Bytes whole =
      kept_before_steps({.contiguous_memory_optimization = true})[Category::activations];
  const Bytes divided =
      kept_before_steps({.partition_activations = true,
                         .contiguous_memory_optimization = true})[Category::activations];
  REQUIRE(whole == layers_of_a_stage * in_flight * input_bytes);
  REQUIRE(8 * divided == whole);
  // Most of it is saved at the peak too; while a layer runs, its own input is whole.
  REQUIRE(plain.peak.live.allocated() - parts.peak.live.allocated() >
          Bytes{whole.count() / 8 * 7} - 4 * input_bytes);
}

TEST_CASE("CB bounds the bucket, whatever the model") {
  constexpr auto buffers = Category::communication_buffers;
  constexpr std::int64_t elements = 2048 * 1000;
  const RankReport plain = counted(ZeroStage::gradients, {});
  const RankReport constant = counted(ZeroStage::gradients, {.reduce_bucket_size = elements});
  REQUIRE(peak(plain, buffers) - layer_bytes == peak(constant, buffers) - Bytes{2 * elements});
  for (const GroupTraffic& group : constant.traffic) {
    if (group.group != "dp") continue;
    for (const auto& [what, calls] : group.traffic) REQUIRE(what.second <= 2 * elements);
  }
}

TEST_CASE("MD makes checkpoints and bucket once, before the first step") {
  const MemoryBreakdown kept = kept_before_steps({.contiguous_memory_optimization = true});
  REQUIRE(kept[Category::activations] == layers_of_a_stage * in_flight * input_bytes);
  // One received input and one received gradient.
  const Bytes buffers = kept[Category::communication_buffers];
  REQUIRE(buffers == layer_bytes + 2 * input_bytes);
  const RankReport rank = counted(ZeroStage::gradients, {.contiguous_memory_optimization = true});
  REQUIRE(peak(rank, Category::communication_buffers) == buffers);
}
