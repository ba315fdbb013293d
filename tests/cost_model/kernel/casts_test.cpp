// What making narrow copies moves, and what fused products and dispatch leave out.
#include <algorithm>

#include "cost_model/kernel/layer_traffic.hpp"
#include "cost_model/kernel/module_time.hpp"
#include "cost_model/program/kernel.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

Problem quantized(std::string_view model, std::string_view gpu, Fp8Recipe recipe) {
  Problem p = problem(Runtime::megatron, model, {.dp = 8, .ep = 1}, gpu);
  p.training.precision = Precision::fp8;
  p.runtime.megatron.fp8_recipe = recipe;
  return p;
}

std::int64_t bytes_of(const Problem& p, LayerKind kind, Module module, Bytes Traffic::*pass) {
  std::int64_t sum = 0;
  for (const Traffic& t : layer_traffic(p, kind)) {
    if (t.module == module) sum += t.times * (t.*pass).count();
  }
  return sum;
}

std::int64_t forward_bytes(const Problem& p, LayerKind kind, Module module) {
  return bytes_of(p, kind, module, &Traffic::forward);
}

std::int64_t backward_bytes(const Problem& p, LayerKind kind, Module module) {
  return bytes_of(p, kind, module, &Traffic::backward);
}

// Of the first linear's input.
double bytes_an_element(const Problem& p) {
  const auto traffic = layer_traffic(p, LayerKind::dense);
  const auto cast = std::ranges::find(traffic, Module::casts, &Traffic::module);
  REQUIRE(cast != traffic.end());
  return static_cast<double>(cast->forward.count()) / (4096.0 * 4096.0);
}

}  // namespace

TEST_CASE("each recipe reads, looks for the largest value, and writes its copies") {
  using enum Fp8Recipe;
  CHECK(bytes_an_element(quantized("llama3-8b", "H100-80GB", delayed)) == 2 + 2);
  CHECK(bytes_an_element(quantized("llama3-8b", "B200", delayed)) == 2 + 1);
  CHECK(bytes_an_element(quantized("llama3-8b", "H100-80GB", tensorwise)) == 2 + 2 + 2);
  CHECK(bytes_an_element(quantized("llama3-8b", "B200", mxfp8)) == Approx(2 + 2 * 33 / 32.0));
  Problem four = quantized("llama3-8b", "B200", delayed);
  four.training.precision = Precision::nvfp4;
  CHECK(bytes_an_element(four) == Approx(2 + 2 + 2 * 9 / 16.0));
}

TEST_CASE("fused grouped products make the activation and the casts beside it themselves") {
  Problem p = quantized("mixtral-8x7b", "B200", Fp8Recipe::mxfp8);
  const auto bytes = [&](Module module) { return forward_bytes(p, LayerKind::moe, module); };
  const std::int64_t activation = bytes(Module::expert_activation);
  const std::int64_t casts = bytes(Module::casts);
  CHECK(activation > 0);
  p.runtime.megatron.use_transformer_engine_op_fuser = true;
  CHECK(bytes(Module::expert_activation) == 0);
  // 2 experts a token, each with an input of 14336 features between its products.
  const std::int64_t between = std::int64_t{2} * 4096 * 14336;
  CHECK(static_cast<double>(casts - bytes(Module::casts)) ==
        Approx(static_cast<double>(between) * (2 + 2 * 33 / 32.0)));
}

TEST_CASE("the tokens of each expert are cast by themselves unless one kernel casts all") {
  const auto most_casts = [](const Problem& p) {
    std::int64_t most = 0;
    for (const Traffic& t : layer_traffic(p, LayerKind::moe)) {
      if (t.module == Module::casts) most = std::max(most, t.times);
    }
    return most;
  };
  Problem p = quantized("mixtral-8x7b", "B200", Fp8Recipe::mxfp8);
  CHECK(most_casts(p) == 8);
  p.layout.ep = 4;
  CHECK(most_casts(p) == 2);
  p.runtime.megatron.use_transformer_engine_op_fuser = true;
  CHECK(most_casts(p) == 1);
  CHECK(most_casts(quantized("mixtral-8x7b", "B200", Fp8Recipe::delayed)) == 1);
}

TEST_CASE("flex dispatch copies tokens into the experts' order once") {
  Problem p = problem(Runtime::megatron, "mixtral-8x7b", {.dp = 4, .ep = 4}, "B200");
  p.runtime.megatron.moe_permute_fusion = true;
  // Two copies go out and two come back: each is permuted, and sorted in two experts.
  const std::int64_t row = std::int64_t{2} * 4096;
  CHECK(forward_bytes(p, LayerKind::moe, Module::permute) == row * 4096 * (3 * 2 + 1 + 2 * 2 * 2));
  p.runtime.megatron.moe_token_dispatcher_type = TokenDispatcher::flex;
  // 4 (1 - (3/4)^2) = 1.75 copies arrive for two experts; there and back.
  const double rows = 4096 * (1.75 + 2);
  CHECK(static_cast<double>(forward_bytes(p, LayerKind::moe, Module::permute)) ==
        Approx(2 * rows * 2 * 4096));
}

// Bytes an element of what the experts put out: product with the probabilities (4), sum (2 + 4 +
// 4), joined (8), narrowed (6); all local experts together work on `received` rows.
TEST_CASE("PyTorch adds the experts' weighted biases in fp32, unless the product is fused") {
  Problem p = problem(Runtime::megatron, "gpt-oss-120b", {.dp = 8, .ep = 8}, "H100-80GB");
  const std::int64_t rows = std::int64_t{4096} * 4;
  CHECK(forward_bytes(p, LayerKind::moe, Module::expert_bias) == 28 * rows * 2880);
  // Widened (6) and narrowed again (6), joined (4); for the bias and for the probabilities a
  // product (8) and its sum (4). Each of 16 local experts narrows its bias's gradient (6), and adds
  // both biases' to fp32 ones (10).
  const std::int64_t gradients = std::int64_t{16} * (6 * 2880 + 10 * 3 * 2880);
  CHECK(backward_bytes(p, LayerKind::moe, Module::expert_bias) == 40 * rows * 2880 + gradients);
  // Each expert starts two kernels forward and five and three backward; two and two are of all.
  std::int64_t forward = 0, backward = 0;
  for (const Traffic& t : layer_traffic(p, LayerKind::moe)) {
    if (t.module != Module::expert_bias) continue;
    forward += t.forward > Bytes{} ? t.times : 0;
    backward += t.backward > Bytes{} ? t.times : 0;
  }
  CHECK(forward == 2 * 16 + 2);
  CHECK(backward == (5 + 3) * 16 + 2);

  p.runtime.megatron.use_transformer_engine_op_fuser = true;
  CHECK(forward_bytes(p, LayerKind::moe, Module::expert_bias) == 0);

  const Problem without = problem(Runtime::megatron, "mixtral-8x7b", {.dp = 8, .ep = 8});
  CHECK(forward_bytes(without, LayerKind::moe, Module::expert_bias) == 0);
}

// Bytes an element of a branch: the activation (3 x 2 forward, 5 x 2 backward), and bounds: 16
// forward; backward two and one masks are made (3 each), two of them joined (3), gradients chosen
// (5 each) and joined (8). Counted by PyTorch 2.14's operators.
TEST_CASE("bounds of what the experts' activation reads are kernels of their own") {
  Problem p = problem(Runtime::megatron, "gpt-oss-120b", {.dp = 8, .ep = 8}, "H100-80GB");
  const std::int64_t branch = std::int64_t{2} * 4096 * 4 * 2880;
  CHECK(forward_bytes(p, LayerKind::moe, Module::expert_activation) == (3 + 8) * branch);
  CHECK(backward_bytes(p, LayerKind::moe, Module::expert_activation) == (5 + 15) * branch);
  p.model.moe->clamped = false;
  CHECK(forward_bytes(p, LayerKind::moe, Module::expert_activation) == 3 * branch);
}

TEST_CASE("rotation that YaRN scales is spelt out but for latent attention") {
  Problem p = problem(Runtime::megatron, "gpt-oss-120b", {}, "H100-80GB");
  // 64 heads of queries and 8 of keys, each of 64.
  const std::int64_t queries_and_keys = std::int64_t{2} * 4096 * (64 + 8) * 64;
  CHECK(forward_bytes(p, LayerKind::moe, Module::rotary) == 12 * queries_and_keys);
  CHECK(backward_bytes(p, LayerKind::moe, Module::rotary) == 17 * queries_and_keys);
  p.model.attention.yarn = false;
  CHECK(forward_bytes(p, LayerKind::moe, Module::rotary) == 2 * queries_and_keys);
}

// core/extensions/transformer_engine.py: with sequence parallelism inputs of fc1 and qkv are
// gathered, and gradients of what fc2 and the projection put out.
TEST_CASE("what is gathered is narrowed by the rank that has it") {
  Problem p = quantized("llama3-8b", "H100-80GB", Fp8Recipe::delayed);
  p.layout = {.dp = 2, .tp = 4, .sequence_parallel = true};
  const auto casts = [&](Bytes Traffic::*pass) {
    return bytes_of(p, LayerKind::dense, Module::casts, pass);
  };
  const std::int64_t tokens = 4096;
  const std::int64_t h = 4096;
  const std::int64_t heads = h / 4;
  const std::int64_t f = 14'336 / 4;
  const std::int64_t qkv = (h + 2 * 1024) / 4;
  // 2 + 2 bytes: inputs of qkv, projection, fc1, fc2; then gradients of their outputs.
  CHECK(casts(&Traffic::forward) == 4 * tokens * (h / 4 + heads + h / 4 + f));
  CHECK(casts(&Traffic::backward) == 4 * tokens * (qkv + h / 4 + 2 * f + h / 4));
  p.layout.sequence_parallel = false;
  CHECK(casts(&Traffic::forward) == 4 * tokens * (h + heads + h + f));
}

TEST_CASE("products of attention in 8 bits read copies of their own") {
  Problem p = quantized("llama3-8b", "H100-80GB", Fp8Recipe::delayed);
  const auto casts = [&](Bytes Traffic::*pass) {
    return bytes_of(p, LayerKind::dense, Module::casts, pass);
  };
  const std::int64_t forward = casts(&Traffic::forward);
  const std::int64_t backward = casts(&Traffic::backward);
  p.runtime.megatron.fp8_dot_product_attention = true;
  const std::int64_t tokens = 4096;
  CHECK(casts(&Traffic::forward) - forward == 4 * tokens * (4096 + 2 * 1024));
  CHECK(casts(&Traffic::backward) - backward == 4 * tokens * 4096);
}

TEST_CASE("an output layer in 8 bits narrows its input and the gradient of the logits") {
  Problem p = quantized("llama3-8b", "B200", Fp8Recipe::mxfp8);
  const auto casts = [&] {
    Traffic sum;
    for (const Traffic& t : head_traffic(p)) {
      if (t.module != Module::casts) continue;
      sum.forward += t.forward;
      sum.backward += t.backward;
    }
    return sum;
  };
  const auto products = [&] { return find(head_times(p), Module::output_layer)->forward.gemm; };
  CHECK(casts().backward == Bytes{});
  const double wide = products();
  p.runtime.megatron.fp8_output_proj = true;
  const std::int64_t tokens = 4096;
  const double bytes = 2 + 2 * 33 / 32.0;
  CHECK(static_cast<double>(casts().forward.count()) == Approx(bytes * tokens * 4096));
  CHECK(static_cast<double>(casts().backward.count()) == Approx(bytes * tokens * 128'256));
  CHECK(products() < 0.6 * wide);
}

// common/hadamard_transform/row_cast_col_hadamard_transform_cast_fusion.cu, since 2.14.
TEST_CASE("4 bits are read once more before their transform is fused") {
  Problem p = quantized("llama3-8b", "B200", Fp8Recipe::delayed);
  p.training.precision = Precision::nvfp4;
  const double fused = bytes_an_element(p);
  p.runtime.megatron.transformer_engine_version = 213;
  CHECK(bytes_an_element(p) == Approx(fused + 2));
  p.runtime.megatron.transformer_engine_version = 214;
  CHECK(bytes_an_element(p) == Approx(fused));
}
