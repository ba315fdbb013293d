// Linear attention, counted by hand and beside the attention that it stands for.
#include "cost_model/kernel/delta_rule.hpp"

#include "cost_model/answer/step_time.hpp"
#include "cost_model/kernel/flops.hpp"
#include "cost_model/kernel/layer_time.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

Problem hybrid(std::string_view model = "qwen3.5-9b") {
  Problem p =
      tests::problem(Runtime::fsdp2, model, {.dp = 8, .zero = ZeroStage::parameters}, "H100-80GB");
  p.runtime = load_runtime(Runtime::fsdp2, {{"layers", "huggingface"}});
  return p;
}

}  // namespace

// 16 heads of keys and 32 of values, 128 values each; a convolution of 4 tokens over 2 x 2,048 +
// 4,096 channels, four products with a state of 128 x 128 a head.
TEST_CASE("a delta rule's FLOPs are Megatron-LM's, and grow with the tokens alone") {
  const ModelSpec model = find_model("qwen3.5-9b").spec;
  const double token = 2.0 * (4 * 8'192 + 4 * 32 * 128 * 128);
  CHECK(delta_rule_flops(*model.linear_attention) == token);
  for (const std::int64_t length : {1'000, 4'096, 1'000'000}) {
    for (const ScoreCount count : {ScoreCount::whole, ScoreCount::causal}) {
      CHECK(layer_mixing_flops(model, LayerKind::linear_dense, length, count) ==
            static_cast<double>(length) * token);
      CHECK(layer_mixing_flops(model, LayerKind::dense, length, count) ==
            layer_score_flops(model, length, count));
    }
  }
}

TEST_CASE("a hybrid's step has the terms of both sorts of layers") {
  Problem p = hybrid();
  const auto sum = [&](std::string_view what) {
    double flops = 0;
    for (const FlopTerm& term : flop_terms(p, ScoreCount::causal)) {
      if (term.what == what) flops += static_cast<double>(term.count) * term.forward;
    }
    return flops;
  };
  const double s = 4096;
  CHECK(sum("delta rule and convolution") == 24 * s * delta_rule_flops(*p.model.linear_attention));
  CHECK(sum("attention scores of a dense layer") == 8 * s * s * 2 * 16 * 256);
  // Queries with a gate, keys, values and output; three matrices of the MLP.
  CHECK(sum("linears of a dense layer") ==
        8 * 2 * s * (4096.0 * (8192 + 2 * 1024 + 4096) + 3.0 * 4096 * 12'288));
  CHECK(sum("linears beside linear attention") ==
        24 * 2 * s * (4096.0 * (8192 + 4096 + 64 + 4096) + 3.0 * 4096 * 12'288));
}

TEST_CASE("linear attention takes time with the tokens, the other with their square") {
  const auto seconds = [](LayerKind kind, std::int64_t length) {
    Problem p = hybrid();
    p.training.sequence_length = length;
    const BlockTime time = layer_time(p, kind);
    return time.forward.total() + time.backward().total();
  };
  const std::int64_t tokens = 32'768;
  CHECK(seconds(LayerKind::linear_dense, 4 * tokens) <
        4.1 * seconds(LayerKind::linear_dense, tokens));
  CHECK(seconds(LayerKind::dense, 4 * tokens) > 6 * seconds(LayerKind::dense, tokens));
}

// What moves is counted in elements of a token: queries and keys of 2,048, values of 4,096.
TEST_CASE("projections that are joined are taken apart, which moves as much again") {
  LinearAttentionSpec spec = *find_model("qwen3.5-9b").spec.linear_attention;
  const auto moved = [&] {
    std::vector<Traffic> out;
    add_linear_attention(out, spec, 10, {.spells_out = true});
    return out;
  };
  const std::vector<Traffic> apart = moved();
  spec.joined_projections = true;
  const std::vector<Traffic> joined = moved();
  REQUIRE(apart.size() == 3);
  constexpr std::int64_t mixed = 8'192, values = 4'096, tokens = 10, bytes = 2;
  CHECK(apart[0].module == Module::convolution);
  CHECK(apart[0].forward.count() == bytes * tokens * 2 * mixed);
  CHECK((joined[0].forward - apart[0].forward).count() ==
        bytes * tokens * (2 * (mixed + values) + 2 * mixed));
  CHECK((joined[0].backward - apart[0].backward).count() == bytes * tokens * 2 * (mixed + values));
  for (std::size_t i = 1; i < 3; ++i) {
    CHECK(joined[i].forward == apart[i].forward);
    CHECK(joined[i].backward == apart[i].backward);
    CHECK(apart[i].backward > apart[i].forward);
  }
  // Keys by value head are 4,096, the inverses of chunks 2,048, the states they begin with 8,192.
  CHECK(apart[0].backward.count() == bytes * tokens * 5 * mixed);
  CHECK(apart[1].module == Module::delta_rule);
  CHECK(apart[1].forward.count() ==
        bytes * tokens *
            (2 * 8'192 + 4 * 2'048 + (2'048 + 4'096 + 2'048) + (4'096 + 4'096) +
             (2'048 + 8'192 + 8'192 + 4'096) + (2 * 2'048 + 4'096 + 8'192 + 4'096)));
  CHECK(apart[1].backward.count() == bytes * tokens * 190'464);
  CHECK(apart[2].backward.count() == bytes * tokens * values * 72);
  CHECK(apart[2].module == Module::gated_output);
  CHECK(apart[2].forward.count() == bytes * tokens * values * 33);
}

// Elements of a token again: two normalised rows of 2,048, keys of 4,096 for each value head.
TEST_CASE("compiled between its kernels, linear attention moves each tensor once") {
  const LinearAttentionSpec spec = *find_model("qwen3.5-9b").spec.linear_attention;
  constexpr std::int64_t tokens = 10, bytes = 2;
  const auto moved = [&](const DeltaRuleHabits& habits) {
    std::vector<Traffic> out;
    add_linear_attention(out, spec, tokens, habits);
    return out;
  };
  const std::vector<Traffic> plain = moved({});
  CHECK(plain[0].forward.count() == bytes * tokens * 2 * 8'192);
  CHECK(plain[0].backward.count() == bytes * tokens * (6 * 8'192 + 2 * 12'288));
  CHECK(plain[1].forward.count() ==
        bytes * tokens *
            (2 * 4'096 + 2 * 4'096 + (4'096 + 2 * 4'096) + 4 * 4'096 + (4'096 + 4'096 + 2'048) +
             (4'096 + 4'096) + (4'096 + 8'192 + 8'192 + 4'096) +
             (2 * 4'096 + 4'096 + 8'192 + 4'096)));
  CHECK(plain[1].backward.count() ==
        bytes * tokens * (184'320 + (2 * 4'096 + 2 * 2'048) + 3 * 4'096 + 2 * 8'192));
  CHECK(plain[2].forward.count() == bytes * tokens * 4'096 * (2 + 3));
  CHECK(plain[2].backward.count() == bytes * tokens * 4'096 * (3 + 5));
  const std::vector<Traffic> spelt = moved({.spells_out = true});
  CHECK(plain[2].forward < spelt[2].forward);
  // Samples are turned on the way out, and heads exchanged on both.
  const std::vector<Traffic> turned = moved({.turns_samples = true});
  CHECK((turned[2].forward - plain[2].forward).count() == bytes * tokens * 2 * 4'096);
  CHECK((turned[2].backward - plain[2].backward).count() == bytes * tokens * 2 * 4'096);
  const std::vector<Traffic> sent = moved({.exchanges_heads = true});
  constexpr std::int64_t projected = 12'288 + 64;
  CHECK((sent[0].forward - plain[0].forward).count() == bytes * tokens * 6 * projected);
  CHECK((sent[0].backward - plain[0].backward).count() == bytes * tokens * 8 * projected);
  CHECK((sent[2].forward - plain[2].forward).count() == bytes * tokens * 4 * 4'096);
  const std::vector<Traffic> both = moved({.exchanges_heads = true, .turns_samples = true});
  CHECK((both[2].forward - sent[2].forward).count() == bytes * tokens * 2 * 4'096);
}

TEST_CASE("Megatron's ranks divide what linear attention moves") {
  const auto moved = [](std::int64_t tp, std::int64_t cp) {
    Problem p = tests::problem(Runtime::megatron, "qwen3.5-9b", {.tp = tp, .cp = cp});
    p.training.sequence_length = 8'192;
    p.training.precision = Precision::bf16;
    for (const Traffic& t : layer_traffic(p, LayerKind::linear_dense)) {
      if (t.module == Module::delta_rule) return t.forward.count();
    }
    return std::int64_t{0};
  };
  CHECK(moved(1, 1) > 0);
  CHECK(moved(4, 1) * 4 == moved(1, 1));
  CHECK(moved(1, 2) * 2 == moved(1, 1));
}

TEST_CASE("the step of a hybrid is the sum of its layers' kernels, and some more") {
  for (const char* model : {"qwen3.5-9b", "qwen3-next-80b-a3b"}) {
    const Problem p = hybrid(model);
    double sum = 0;
    for (std::int64_t layer = 0; layer < p.model.layers; ++layer) {
      const BlockTime time = layer_time(p, kind_of(p.model, layer));
      sum += time.forward.total() + time.backward().total();
    }
    const StepTime step = step_time(p, Evaluator(p));
    const double computed = step.computed - step.optimizer;
    CAPTURE(model, sum, computed);
    CHECK(computed > sum);
    CHECK(computed < 1.7 * sum);
  }
}
