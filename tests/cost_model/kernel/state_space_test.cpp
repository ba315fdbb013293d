// The mixer of a state space, counted by hand.
#include "cost_model/kernel/state_space.hpp"

#include "cost_model/answer/step_time.hpp"
#include "cost_model/kernel/flops.hpp"
#include "cost_model/kernel/layer_modules.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

Problem hybrid(std::string_view model) {
  Problem p =
      tests::problem(Runtime::fsdp2, model, {.dp = 8, .zero = ZeroStage::parameters}, "H100-80GB");
  p.runtime = load_runtime(Runtime::fsdp2, {{"layers", "huggingface"}});
  return p;
}

std::vector<Module> modules_of(const ModuleList& list) {
  std::vector<Module> modules;
  for (const auto& [module, linear] : list) modules.push_back(module);
  return modules;
}

}  // namespace

// 64 heads of 64, a state of 128 values; Megatron-LM's seven for each.
TEST_CASE("a state space's FLOPs grow with the tokens alone") {
  const ModelSpec model = find_model("nemotron-3-nano-30b-a3b").spec;
  const double token = 7.0 * 4'096 * 128;
  CHECK(state_space_flops(*model.state_space) == token);
  for (const std::int64_t length : {1'000, 1'000'000}) {
    const double s = static_cast<double>(length);
    CHECK(layer_mixing_flops(model, LayerKind::linear, length, ScoreCount::causal) == s * token);
    CHECK(layer_mixing_flops(model, LayerKind::experts, length, ScoreCount::causal) == 0);
    CHECK(layer_mixing_flops(model, LayerKind::attention, length, ScoreCount::causal) ==
          layer_score_flops(model, length, ScoreCount::causal));
  }
}

// 23 state spaces, 23 layers of experts, 6 of attention, as the pattern has them.
TEST_CASE("layers of one half are terms of their own") {
  const Problem p = hybrid("nemotron-3-nano-30b-a3b");
  std::map<std::string_view, std::pair<std::int64_t, double>> terms;
  for (const FlopTerm& term : flop_terms(p, ScoreCount::causal)) {
    terms[term.what] = {term.count, term.forward};
  }
  const double s = 4096, h = 2688;
  REQUIRE(terms.size() == 6);
  CHECK(terms["linears beside a state space"] ==
        std::pair(23L, 2 * s * h * (2 * 4'096 + 2 * 8 * 128 + 64 + 4'096)));
  CHECK(terms["scan of the state"] == std::pair(23L, 7 * s * 4'096 * 128));
  CHECK(terms["linears of an attention layer"] ==
        std::pair(6L, 2 * s * h * (2 * 4'096 + 2 * 2 * 128)));
  CHECK(terms["attention scores of an attention layer"] == std::pair(6L, s * s * 2 * 4'096));
  CHECK(terms["linears of an experts layer"] ==
        std::pair(23L, 2 * s * h * (128 + 6 * 2 * 1'856 + 2 * 3'712)));
}

TEST_CASE("layers of one half run its modules alone") {
  const Problem p = hybrid("nemotron-h-8b");
  using enum Module;
  const LayerModules mixer = layer_modules(p, LayerKind::linear);
  CHECK(modules_of(mixer.attention) ==
        std::vector{input_norm, in_proj, convolution, state_scan, gated_output, o_proj, residual});
  CHECK(mixer.feed_forward.empty());
  const LayerModules mlp = layer_modules(p, LayerKind::mlp);
  CHECK(mlp.attention.empty());
  CHECK(modules_of(mlp.feed_forward) ==
        std::vector{pre_mlp_norm, up_proj, activation, down_proj, residual});
  const LayerModules attention = layer_modules(p, LayerKind::attention);
  CHECK(modules_of(attention.attention) == std::vector{input_norm, q_proj, k_proj, v_proj,
                                                       qkv_split, core_attention, o_proj,
                                                       residual});
  CHECK(attention.feed_forward.empty());
  CHECK(modules_of(layer_modules(hybrid("bamba-9b"), LayerKind::linear_dense).attention) ==
        modules_of(mixer.attention));
}

// 16 chunks of 128 heads are 16 to each of 132 multiprocessors; a group of 8 heads has fewer.
TEST_CASE("sums over a group's heads are split among an H100's multiprocessors") {
  const StateSpaceSpec bamba = *find_model("bamba-9b").spec.state_space;
  CHECK(state_space_splits(bamba, 4'096, 1) == 8);
  CHECK(state_space_splits(bamba, 2 * 4'096, 2) == 4);
  CHECK(state_space_splits(bamba, 100, 1) == 128);
  CHECK(state_space_splits(bamba, 1 << 20, 1) == 1);
  const StateSpaceSpec nano = *find_model("nemotron-3-nano-30b-a3b").spec.state_space;
  CHECK(state_space_splits(nano, 4'096, 1) == 1);
  CHECK(state_space_splits(nano, 512, 1) == 4);
}

// 8,192 features, 8,448 channels; 256 elements of a group for each token of 16 bits.
TEST_CASE("what a state space moves is its tensors', each as often as a kernel reads it") {
  const StateSpaceSpec bamba = *find_model("bamba-9b").spec.state_space;
  const auto moved = [&](std::int64_t tokens, StateSpaceCopies copies = {}) {
    std::vector<Traffic> list;
    add_state_space(list, bamba, tokens, 1, copies);
    return list;
  };
  constexpr std::int64_t tokens = 4'096, bytes = 2 * tokens;
  const std::vector<Traffic> all = moved(tokens);
  REQUIRE(all.size() == 3);
  CHECK(all[0].module == Module::convolution);
  CHECK(all[0].forward == Bytes{2 * 8'448 * bytes});
  CHECK(all[0].backward == Bytes{5 * 8'448 * bytes});
  CHECK(all[2].module == Module::gated_output);
  CHECK(all[2].forward == Bytes{3 * 8'192 * bytes});
  CHECK(all[2].backward == Bytes{6 * 8'192 * bytes});
  // The scan: time steps and decays of 128 heads in fp32; features written into states and read
  // from them, 4,096 elements a token, in fp32 and in 16 bits; pairs of 256 tokens in fp32.
  constexpr std::int64_t x = 8'192, group = 128, rates = 2 * 128, states = 4'096, pairs = 2 * 256;
  CHECK(all[1].module == Module::state_scan);
  CHECK(all[1].forward ==
        Bytes{bytes * ((128 + 2 * rates) + (x + group + 2 * rates + 2 * states) + 3 * states +
                       (2 * group + pairs) + (2 * x + group + 2 * rates + pairs + states))});
  CHECK(all[1].backward > 2 * all[1].forward);
  CHECK(moved(2 * tokens)[1].forward == 2 * all[1].forward);
  CHECK(all[1].access == Access::scan);
  // A copy reads and writes 16,768 projected values of a token, and the scan's 8,192.
  constexpr std::int64_t copy = 2 * (16'768 + 8'192) * bytes;
  const auto more = [&](StateSpaceCopies copies) {
    const Traffic whole = moved(tokens, copies)[0];
    CHECK(whole.backward - all[0].backward == whole.forward - all[0].forward);
    return whole.forward - all[0].forward;
  };
  CHECK(more({.turns_samples = true}) == Bytes{copy});
  CHECK(more({.exchanges_heads = true}) == Bytes{3 * copy});
  CHECK(more({true, true}) == Bytes{4 * copy});
}
