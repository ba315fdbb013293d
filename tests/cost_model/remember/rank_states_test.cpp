#include "cost_model/remember/rank_states.hpp"

#include <random>

#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;

TEST_CASE("stages that hold other kinds of layers are told apart") {
  for (const LayerKind kind : all_layer_kinds) {
    ModelSpec model = find_model("nemotron-3-nano-30b-a3b").spec;
    model.layers = 4;
    model.layer_kinds = {LayerKind::mlp, kind, LayerKind::dense, kind};
    const Stage first{.chunks = {{0, 2}}}, last{.chunks = {{2, 4}}};
    CHECK(content_of(model, first) != content_of(model, last));
    CHECK(layers_with_experts(model, 0, 4) == (has_experts(kind) ? 2 : 0));
    Problem problem;
    problem.model = model;
    CHECK(expert_layers(problem, last) == (has_experts(kind) ? 1 : 0));
    model.layer_kinds[0] = LayerKind::dense;
    CHECK(content_of(model, first) == content_of(model, last));
  }
}

// A search finds them again by their keys.
TEST_CASE("what a stage keeps of the states does not depend on micro-batches") {
  std::mt19937 random(31);
  tests::Draw draw(random);
  for (int tried = 0; tried < tests::draws(60);) {
    const std::optional<Problem> p = draw.problem();
    if (!p) continue;
    ++tried;
    Problem other = *p;
    other.layout.micro_batch *= draw.pick({1, 2, 4});
    other.training.global_batch *= draw.pick({4, 8, 12});
    const WeightInventory weights = weight_inventory(p->model);
    for (const Stage& stage : stages(*p)) {
      const StageContent content = content_of(p->model, stage);
      REQUIRE(state_key(*p, content) == state_key(other, content));
      REQUIRE(grid_key(*p) != grid_key(other));
      const RankStates a = rank_states(*p, weights, stage);
      const RankStates b = rank_states(other, weights, stage);
      CAPTURE(name_of(p->runtime.kind), name_of(p->layout.zero));
      REQUIRE(a.communicators == b.communicators);
      REQUIRE(a.sums.states == b.sums.states);
      REQUIRE(a.sums.resident == b.sums.resident);
      REQUIRE(a.sums.step == b.sums.step);
      REQUIRE(a.sums.construction == b.sums.construction);
      REQUIRE(a.resident == b.resident);
      REQUIRE(a.construction.live == b.construction.live);
    }
  }
}
