#include "cost_model/runtime/deepspeed/live_parameters.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

struct Asked {
  Problem problem;
  WeightInventory inventory;
  std::int64_t elements = 0;  // of all parameters
  std::int64_t layer = 0;     // of one layer's
};

Asked stage_3(std::string_view model) {
  Asked asked{tests::problem(Runtime::deepspeed, model, {.dp = 8, .zero = ZeroStage::parameters},
                             "H100-80GB"),
              {}};
  const Problem& p = asked.problem;
  asked.inventory = weight_inventory(p.model);
  const auto sum = [&](const std::vector<Weight>& weights) { return local_elements(weights, p); };
  asked.layer = sum(asked.inventory.layer(LayerKind::dense));
  asked.elements =
      sum(asked.inventory.embedding) + p.model.layers * asked.layer + sum(asked.inventory.head);
  return asked;
}

std::int64_t most_of(const LiveParameters& live) {
  return std::max({std::ranges::max(live.in_layers), live.at_head, live.at_turn});
}

}  // namespace

// The model itself, which has no parameters, asks for them before any module that has.
TEST_CASE("what one prefetch holds is gathered as one, and copied beside its buffer") {
  Asked a = stage_3("llama3-8b");
  a.problem.runtime.deepspeed.stage3_prefetch_bucket_size = a.elements;
  a.problem.runtime.deepspeed.stage3_max_live_parameters = a.elements;
  const LiveParameters live = live_parameters(a.problem, a.inventory);
  const std::int64_t norms = (2 * a.problem.model.layers + 1) * a.problem.model.hidden_size;
  CHECK(most_of(live) == 2 * a.elements - norms);
  CHECK(live.at_turn == a.elements);  // used again within the reuse distance
}

TEST_CASE("a search for what to gather ahead keeps what it passes, however far its next use is") {
  Asked a = stage_3("llama3.2-1b");
  a.problem.runtime.deepspeed.stage3_max_live_parameters = 2 * a.elements;
  const std::int64_t with_reuse = live_parameters(a.problem, a.inventory).at_turn;
  a.problem.runtime.deepspeed.stage3_max_reuse_distance = 0;
  CHECK(live_parameters(a.problem, a.inventory).at_turn == with_reuse);
  a.problem.runtime.deepspeed.stage3_prefetch_bucket_size = 0;
  const std::int64_t embedding = a.inventory.embedding.front().elements();  // the output layer too
  CHECK(live_parameters(a.problem, a.inventory).at_turn < embedding + 2 * a.layer);
}

// DeepSpeed 0.19.8 was seen to gather Qwen3 0.6B so (28 layers, 8 ranks): nine groups of fifty
// million elements, one at each start before the ninth module ran. The ninth takes the queries of
// the first layer again, which went before the search had passed their next use, and its buffer
// stays until that; nothing else is gathered again.
TEST_CASE(
    "what a tied output layer uses stands between a layer's uses, so its parameters go early") {
  const Asked a = stage_3("qwen3-0.6b");
  const LiveParameters live = live_parameters(a.problem, a.inventory);
  const std::int64_t queries = 2048 * 1024;
  const std::int64_t ninth = 39'845'888;
  CHECK(live.forward.elements == a.elements - live.updated.elements + queries);
  CHECK(live.backward.elements == 0);
  CHECK(live.at_turn == a.elements + ninth);
}

// Each module asks for more, so that only the limit of what lives at once stops it: but for the
// parameter that goes beyond it, and the buffers of what was copied out.
TEST_CASE("a large model's parameters are gathered ahead up to the limit of what lives at once") {
  Asked a = stage_3("llama3-70b");
  const DeepspeedSettings& set = a.problem.runtime.deepspeed;
  const LiveParameters live = live_parameters(a.problem, a.inventory);
  CHECK(live.at_turn > set.stage3_max_live_parameters);
  CHECK(live.at_turn < set.stage3_max_live_parameters + 2 * a.layer);
  CHECK(most_of(live) < set.stage3_max_live_parameters + 2 * a.layer);
}

TEST_CASE("a model without layers gathers its ends") {
  Problem p =
      tests::problem(Runtime::deepspeed, "qwen2.5-0.5b", {.dp = 2, .zero = ZeroStage::parameters});
  p.model.layers = 0;
  const LiveParameters live = live_parameters(p, weight_inventory(p.model));
  CHECK(live.in_layers.empty());
  CHECK(live.at_turn > 0);
}
