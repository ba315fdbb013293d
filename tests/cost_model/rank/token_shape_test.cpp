// Where a token's experts are, on average.
#include "cost_model/rank/token_shape.hpp"

#include <array>

#include "presets/runtime.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

TEST_CASE("a token reaches a place once, however many of its experts are there") {
  MoeSpec moe{.experts = 64, .experts_per_token = 2};
  CHECK(reached_places(1, moe) == 1);
  CHECK(reached_places(2, moe) == Approx(1.5));  // both in the same place half of the time
  moe.experts_per_token = 8;
  CHECK(reached_places(8, moe) < 8);
}

// DeepSeek-V3, section 2.1.2: at most four nodes a token, here of eight.
TEST_CASE("a token that chooses groups of experts first reaches the places of these alone") {
  const MoeSpec deepseek = *find_model("deepseek-v3").spec.moe;
  CHECK(deepseek.router_groups == 8);
  CHECK(deepseek.groups_per_token == 4);
  MoeSpec free = deepseek;
  free.router_groups = free.groups_per_token = 1;
  CHECK(reached_places(8, deepseek) == Approx(reached_places(4, free)));
  CHECK(reached_places(64, deepseek) == Approx(reached_places(32, free)));
  // Two places hold four groups each, and limit nothing.
  CHECK(reached_places(2, deepseek) == Approx(reached_places(2, free)));
}

TEST_CASE("OLMo's norms stand after each half where its class runs, elsewhere before") {
  Problem p = tests::problem(Runtime::ddp, "olmo2-7b", {.dp = 8});
  const auto sum = [&] {
    const LayerNorms norms = layer_norms(p);
    return std::array{norms.input, norms.pre_mlp, norms.after};
  };
  CHECK(sum() == std::array{false, false, true});
  p.runtime = load_runtime(Runtime::megatron, {});
  CHECK(sum() == std::array{true, true, false});
  p.model = find_model("gemma2-2b").spec;
  CHECK(sum() == std::array{true, true, true});
  p.model = find_model("gpt-j-6b").spec;
  CHECK(sum() == std::array{true, false, false});
}

// transformers v5.24.0 models/llama4/modeling_llama4.py Llama4TextMoe: scores of the experts that
// were not chosen are zero, and their products are computed all the same.
TEST_CASE("each expert of Transformers' Llama 4 works on all tokens, elsewhere on its own") {
  Problem p = tests::problem(Runtime::ddp, "llama4-scout", {.dp = 8});
  const std::int64_t experts = p.model.moe->experts;
  const RoutedTokens all = routed_tokens(p);
  CHECK(all.received == experts * all.local);
  p.runtime = load_runtime(Runtime::fsdp2, {});
  p.runtime.fsdp2.layers = LayerCode::huggingface;
  CHECK(routed_tokens(p).received == all.received);
  CHECK(normalises_heads(p));
  p.runtime.fsdp2.layers = LayerCode::torchtitan;
  CHECK(routed_tokens(p).received == all.local);
  CHECK_FALSE(normalises_heads(p));
  p.runtime = load_runtime(Runtime::megatron, {});
  CHECK(routed_tokens(p).received == all.local);
  // DeepSpeed's own layer of experts sends them, where several ranks hold them.
  Problem sent = tests::problem(Runtime::deepspeed, "llama4-scout", {.dp = 8, .ep = 2});
  CHECK(routed_tokens(sent).received == routed_tokens(sent).local);
  sent.layout.ep = 1;
  CHECK(routed_tokens(sent).received == experts * routed_tokens(sent).local);
  // Others are sent to theirs by Transformers, too.
  const Problem mixtral = tests::problem(Runtime::ddp, "mixtral-8x7b", {.dp = 8});
  CHECK(routed_tokens(mixtral).received == 2 * routed_tokens(mixtral).local);
}
