// Replicas of Megatron-FSDP that divide the optimizer's states among themselves.
#include "cost_model/answer/estimate.hpp"
#include "cost_model/pipeline/optimizer_time.hpp"
#include "tests/catch.hpp"
#include "tests/cost_model/network/loads.hpp"

using namespace zeroplan;
using namespace zeroplan::tests;

namespace {

// Groups of 8 that hold a model, 4 of them.
Problem four_replicas(OuterSharding outer, std::string_view model = "llama3-8b") {
  Problem p = problem(Runtime::megatron, model,
                      {.dp = 32, .hsdp = 8, .zero = ZeroStage::parameters}, "H100-80GB");
  p.runtime.megatron.outer_dp_sharding_strategy = outer;
  return p;
}

ModelStates states(const Problem& p) {
  return model_states(p, weight_inventory(p.model), stages(p).front());
}

Bytes carried(const Problem& p, Collective collective) {
  Bytes sum;
  for (const CollectiveLoad& load : loads_of(p)) {
    const bool counts = load.group.name == "replica" && load.collective == collective;
    if (counts) sum += load.calls * load.payload;
  }
  return sum;
}

}  // namespace

TEST_CASE("the optimizer's states are divided by all ranks, gradients and parameters by a group") {
  const ModelStates whole = states(four_replicas(OuterSharding::no_shard));
  const ModelStates parts = states(four_replicas(OuterSharding::optim));
  CHECK(whole.optimizer_states == 4 * whole.parameters);  // 8 bytes beside 2
  CHECK(whole.master_parameters == 2 * whole.parameters);
  CHECK(parts.optimizer_states == parts.parameters);
  CHECK(2 * parts.master_parameters == parts.parameters);
  CHECK(parts.gradients == parts.parameters);  // of 16 bits
  // Buckets are padded until all ranks have whole rows.
  CHECK(parts.parameters > whole.parameters);
  CHECK(static_cast<double>(parts.parameters.count()) ==
        Approx(static_cast<double>(whole.parameters.count())).epsilon(0.002));
}

TEST_CASE("gradients are scattered among replicas, and what is updated is gathered") {
  using enum Collective;
  const Problem whole = four_replicas(OuterSharding::no_shard);
  const Problem parts = four_replicas(OuterSharding::optim);
  const Bytes gradients = carried(parts, reduce_scatter);
  CHECK(gradients > carried(whole, all_reduce));  // by the padding
  CHECK(static_cast<double>(gradients.count()) ==
        Approx(static_cast<double>(carried(whole, all_reduce).count())).epsilon(0.002));
  CHECK(carried(whole, reduce_scatter) == Bytes{});
  CHECK(carried(whole, all_gather) == Bytes{});
  CHECK(carried(parts, all_reduce) == Bytes{});
  // Both of 16 bits.
  CHECK(carried(parts, all_gather) == gradients);
}

TEST_CASE("a part of the update takes a part of its time") {
  const auto seconds = [](const Problem& p) {
    const WeightInventory inventory = weight_inventory(p.model);
    const Stage stage = stages(p).front();
    return optimizer_seconds(p, inventory, stage,
                             stage_elements(p, inventory, stage, state_recipe(p).padding));
  };
  CHECK(seconds(four_replicas(OuterSharding::optim)) <
        seconds(four_replicas(OuterSharding::no_shard)) / 2);
}

TEST_CASE("without replicas there is nothing to divide") {
  for (const std::int64_t group : {0, 32}) {
    Problem whole = four_replicas(OuterSharding::no_shard), parts = whole;
    whole.layout.hsdp = parts.layout.hsdp = group;
    parts.runtime.megatron.outer_dp_sharding_strategy = OuterSharding::optim;
    CHECK(played_estimate(whole, Evaluator(whole)).device() ==
          played_estimate(parts, Evaluator(parts)).device());
    CHECK(sorted(loads_of(whole)) == sorted(loads_of(parts)));
  }
}
