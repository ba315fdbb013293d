// Layers in 16 bits where the others have fewer.
#include "cost_model/question/layer_width.hpp"

#include <random>

#include "cost_model/answer/estimate.hpp"
#include "cost_model/answer/step_time.hpp"
#include "cost_model/states/buffers.hpp"
#include "cost_model/states/model_states.hpp"
#include "tests/catch.hpp"
#include "tests/cost_model/network/loads.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;
using namespace zeroplan::tests;

namespace {

Problem eight_bits(std::string_view model, Layout layout = {}) {
  Problem p = problem(Runtime::megatron, model, layout, "H100-80GB");
  p.training.precision = Precision::fp8;
  p.runtime.megatron.fp8_recipe = Fp8Recipe::tensorwise;
  return p;
}

Problem with_ends(Problem p, std::int64_t start, std::int64_t end) {
  MegatronSettings& set = p.runtime.megatron;
  set.first_last_layers_bf16 = true;
  set.num_layers_at_start_in_bf16 = start;
  set.num_layers_at_end_in_bf16 = end;
  widen_ends(p.model, set);
  return p;
}

std::int64_t wide_layers(const ModelSpec& model) {
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < model.layers; ++i) count += is_wide(kind_of(model, i)) ? 1 : 0;
  return count;
}

double seconds(const Problem& p) {
  return step_time(p, Evaluator(p)).seconds;
}

Bytes peak(const Problem& p) {
  return played_estimate(p, Evaluator(p)).device();
}

}  // namespace

TEST_CASE("a kind and the same in 16 bits differ in nothing else") {
  for (const LayerKind kind : all_layer_kinds) {
    if (is_wide(kind)) continue;
    const LayerKind wide = wide_kind(kind);
    CHECK(narrow_kind(wide) == kind);
    CHECK(has_mixer(wide) == has_mixer(kind));
    CHECK(has_feed_forward(wide) == has_feed_forward(kind));
    CHECK(has_experts(wide) == has_experts(kind));
    CHECK(is_linear(wide) == is_linear(kind));
    CHECK(name_of(wide) == std::string(name_of(kind)) + " in 16 bits");
  }
}

// core/fp8_utils.py is_first_last_bf16_layer; multi_token_prediction.py asks of no layer.
TEST_CASE("as many layers at each end as are asked for, of MTP modules none") {
  const ModelSpec model = with_ends(eight_bits("deepseek-v3"), 4, 2).model;
  CHECK(wide_layers(model) == 6);
  CHECK(kind_of(model, 2) == LayerKind::wide_dense);
  CHECK(kind_of(model, 3) == LayerKind::wide_moe);
  CHECK(kind_of(model, 4) == LayerKind::moe);
  CHECK(kind_of(model, 58) == LayerKind::moe);
  CHECK(kind_of(model, 60) == LayerKind::wide_moe);
  CHECK(kinds_of_mtp_module(model) == LayerKinds{LayerKind::moe});
  Problem off = eight_bits("deepseek-v3");
  off.runtime.megatron.num_layers_at_end_in_bf16 = 2;
  const ModelSpec before = off.model;
  widen_ends(off.model, off.runtime.megatron);
  CHECK(off.model == before);
}

TEST_CASE("a model whose layers are all in 16 bits needs and takes what it does in bf16") {
  for (const char* name : {"llama3-8b", "mixtral-8x7b", "deepseek-v2-lite", "nemotron-h-8b"}) {
    for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
      CAPTURE(name, name_of(recompute));
      Problem narrow = eight_bits(name, {.dp = 8, .recompute = recompute});
      const Problem wide = with_ends(narrow, narrow.model.layers, 0);
      REQUIRE(wide_layers(wide.model) == wide.model.layers);
      Problem bf16 = narrow;
      bf16.training.precision = Precision::bf16;
      CHECK(peak(wide) == peak(bf16));
      CHECK(seconds(wide) == Approx(seconds(bf16)));
      CHECK(seconds(narrow) <= seconds(bf16));
    }
  }
}

TEST_CASE("each layer in 16 bits adds what it is more than another, and no copy of its weights") {
  const Problem none = eight_bits("llama3-70b", {.dp = 8, .tp = 8, .sequence_parallel = true});
  const Problem two = with_ends(none, 1, 1), four = with_ends(none, 2, 2);
  CHECK(seconds(two) - seconds(none) == Approx(seconds(four) - seconds(two)));
  CHECK(seconds(two) > seconds(none));
  const auto copies = [](const Problem& p) {
    return workspaces(p, weight_inventory(p.model), stages(p).front()).back().bytes;
  };
  CHECK(80 * (copies(none) - copies(two)).count() == 2 * copies(none).count());
}

TEST_CASE("matrices of layers in 16 bits are kept and gathered in 16 bits") {
  Problem narrow = eight_bits("llama3-70b", {.dp = 64, .zero = ZeroStage::optimizer});
  narrow.runtime.megatron.fp8_param_gather = true;
  const Problem wide = with_ends(narrow, 1, 1);
  const auto parameters = [](const Problem& p) {
    return model_states(p, weight_inventory(p.model), stages(p).front()).parameters;
  };
  constexpr std::int64_t of_layer = 855'638'016;  // in matrices
  CHECK(parameters(wide) - parameters(narrow) == Bytes{2 * of_layer});
  const auto gathered = [](const Problem& p) {
    Bytes sum;
    for (const CollectiveLoad& load : loads_of(p, 0)) {
      if (load.collective == Collective::all_gather && load.group.name == "dp") {
        sum += load.calls * load.payload;
      }
    }
    return sum;
  };
  CHECK(gathered(wide) - gathered(narrow) == Bytes{2 * of_layer});
}

TEST_CASE("where nothing has fewer bits the setting changes nothing") {
  std::mt19937 random(77);
  Draw draw(random);
  for (int tried = 0; tried < draws(60);) {
    const std::optional<Problem> p = draw.problem({static_cast<int>(Runtime::megatron)});
    if (!p || is_quantized(p->training.precision) || p->model.layers < 4) continue;
    ++tried;
    const Problem wide = with_ends(*p, 1, 2);
    CAPTURE(p->model.name, p->layout.pp, p->layout.vpp, name_of(p->layout.zero),
            name_of(p->layout.recompute));
    REQUIRE(peak(wide) == peak(*p));
    REQUIRE(seconds(wide) == Approx(seconds(*p)));
  }
}
