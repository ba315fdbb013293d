// Which kernels Megatron-Core's selective recompute runs again: those of the modules it is told to
// drop, and no others.
#include <set>

#include "cost_model/rank/recomputed.hpp"
#include "cost_model/runtime/megatron/layer.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

using Names = std::set<std::string_view>;

Names repeated(const Problem& p, LayerKind kind, RecomputeModule module) {
  const Block block = megatron_layer(p, kind, bit_of(module));
  Names names;
  for (const Event& event : block.backward) {
    if (!event.computes() || event.kernel().product != Product::forward) continue;
    names.insert(name_of(event.kernel().module));
  }
  return names;
}

Problem problem(std::string_view model) {
  return tests::problem(Runtime::megatron, model, {.recompute = Recompute::selective});
}

}  // namespace

TEST_CASE("a norm that is fused into a linear runs again with it") {
  using enum RecomputeModule;
  Problem p = problem("llama3-8b");
  const auto again = [&](RecomputeModule module) { return repeated(p, LayerKind::dense, module); };
  REQUIRE(again(layernorm).empty());
  REQUIRE(again(mlp) == Names{"pre-mlp norm", "fc1", "activation", "fc2"});
  REQUIRE(again(core_attn) == Names{"core attention"});
  p.runtime.megatron.transformer_engine_version = 0;
  REQUIRE(again(layernorm) == Names{"input norm", "pre-mlp norm"});
  REQUIRE(again(mlp) == Names{"fc1", "activation", "fc2"});
}

TEST_CASE("latents are projected up again from the norms before them") {
  using enum RecomputeModule;
  const Problem p = problem("deepseek-v3");
  const auto again = [&](RecomputeModule module) { return repeated(p, LayerKind::dense, module); };
  REQUIRE(again(mla_up_proj) == Names{"latent norm", "q_up", "kv_up", "rotary"});
  REQUIRE(again(layernorm) == Names{"input norm"});
}

TEST_CASE("experts run again as a whole or in part") {
  using enum RecomputeModule;
  const Problem p = problem("deepseek-v3");
  const auto again = [&](RecomputeModule module) { return repeated(p, LayerKind::moe, module); };
  const Names shared{"shared_fc1", "shared activation", "shared_fc2"};
  REQUIRE(again(moe_act) == Names{"expert activation"});
  REQUIRE(again(shared_experts) == shared);
  Names all{"router", "permute", "fc1", "expert activation", "fc2", "shared sum"};
  all.insert(shared.begin(), shared.end());
  REQUIRE(again(moe) == all);
  REQUIRE(again(layernorm) == Names{"input norm", "pre-mlp norm"});
}
