// What grows when something else does: properties of every answer, over random legal layouts.
#include <algorithm>

#include "cost_model/answer/estimate.hpp"
#include "cost_model/answer/step_time.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;

namespace {

// Calls check(problem) for so many legal problems.
template <class Check>
void for_random_problems(unsigned seed, int count, const Check& check) {
  std::mt19937 random(seed);
  tests::Draw draw(random);
  for (int done = 0; done < tests::draws(count);) {
    const auto p = draw.problem();
    if (!p) continue;
    ++done;
    const Layout& l = p->layout;
    CAPTURE(name_of(p->runtime.kind), p->model.name, l.dp, l.tp, l.pp, l.vpp, l.cp, l.ep, l.etp,
            name_of(l.zero), name_of(l.recompute), name_of(l.schedule), l.sequence_parallel,
            l.micro_batch, p->training.global_batch, p->training.sequence_length);
    check(*p);
  }
}

std::vector<Bytes> allocated(const Problem& p) {
  std::vector<Bytes> all;
  for (const StageMemory& stage : estimate(p, Evaluator(p)).stages) {
    all.push_back(stage.memory.allocated());
  }
  return all;
}

Bytes most_states(const Problem& p) {
  Bytes most;
  const Evaluator evaluator(p);
  for (const Stage& stage : stages(p)) {
    most = std::max(most, model_states(p, evaluator.weights(), stage).total());
  }
  return most;
}

}  // namespace

TEST_CASE("more bandwidth is never slower", "[property]") {
  for_random_problems(1, 400, [](const Problem& p) {
    const double before = step_seconds(p, Evaluator(p));
    const auto seconds_with = [&](auto change) {
      Problem faster = p;
      change(faster.cluster);
      return step_seconds(faster, Evaluator(faster));
    };
    // What the exchange of gradients adds to each pass is shared among a rank's chunks as their
    // seconds are: what is faster moves some of it to chunks that have little of that. 0.7 % were
    // seen.
    const double slack = p.layout.vpp > 1 ? 0.01 * before : 1e-12 * before;
    REQUIRE(seconds_with([](ClusterSpec& c) { c.intra_node_bandwidth *= 1.5; }) <= before + slack);
    REQUIRE(seconds_with([](ClusterSpec& c) { c.inter_node_bandwidth *= 1.5; }) <= before + slack);
    // While the host is slower than a backward pass' kernels, the two parts into which schedules cut
    // it share its time as their kernels do: what one gains the other loses, up to 3 %.
    if (p.layout.schedule > Schedule::interleaved) return;
    REQUIRE(seconds_with([](ClusterSpec& c) { c.gpu.memory_bandwidth *= 1.5; }) <= before + slack);
  });
}

TEST_CASE("longer sequences never allocate less", "[property]") {
  for_random_problems(2, 250, [](const Problem& p) {
    Problem longer = p;
    longer.training.sequence_length *= 2;
    if (first_violation(longer)) return;
    const std::vector<Bytes> before = allocated(p);
    const std::vector<Bytes> after = allocated(longer);
    for (std::size_t i = 0; i < before.size(); ++i) {
      CAPTURE(i, before[i].count(), after[i].count());
      REQUIRE(after[i] >= before[i]);
    }
  });
}

TEST_CASE("finer sharding never holds more states, but for padding", "[property]") {
  for_random_problems(3, 250, [](const Problem& p) {
    const Bytes before = most_states(p);
    // Buckets and shards are rounded up to whole shares of all ranks.
    const Bytes padding = std::max(Bytes{before.count() / 1000}, Bytes{std::int64_t{1} << 20});
    CAPTURE(before.count());
    Problem wider = p;
    wider.layout.dp *= 2;
    wider.training.global_batch *= 2;
    wider.cluster.gpus *= 2;
    if (!first_violation(wider)) REQUIRE(most_states(wider) <= before + padding);
    Problem deeper = p;
    if (p.layout.zero == ZeroStage::parameters) return;
    // One rank divides nothing, and Megatron-FSDP widens its 16-bit gradients for the step.
    if (shard_widths(p).dense == 1) return;
    deeper.layout.zero = static_cast<ZeroStage>(static_cast<int>(p.layout.zero) + 1);
    if (!first_violation(deeper)) REQUIRE(most_states(deeper) <= before + padding);
  });
}
