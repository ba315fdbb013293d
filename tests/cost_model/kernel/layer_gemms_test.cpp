#include "cost_model/kernel/layer_gemms.hpp"

#include <algorithm>

#include "cost_model/kernel/flops.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

double flops_of(const std::vector<Gemm>& gemms, Product product) {
  double sum = 0;
  for (const Gemm& gemm : gemms) sum += gemm.product == product ? flops(gemm) : 0;
  return sum;
}

Gemm cut(Split split, Gemm gemm) {
  gemm.split = split;
  return gemm;
}

}  // namespace

TEST_CASE("the GEMMs of a llama layer over eight ranks") {
  const Problem p = problem(Runtime::megatron, "llama3-8b", {.tp = 8, .sequence_parallel = true});
  const std::vector<Gemm> gemms = layer_gemms(p, LayerKind::dense);
  REQUIRE(gemms.size() == 12);  // three for each of four linears
  // Queries, keys and values in one: (4096 + 2 x 1024) / 8 features. The gradient adds to fp32.
  REQUIRE(gemms[0] == cut(Split::rows, Gemm{Module::qkv, Product::forward, 4096, 768, 4096}));
  REQUIRE(gemms[1] ==
          cut(Split::rows, Gemm{Module::qkv, Product::input_gradient, 4096, 4096, 768}));
  REQUIRE(gemms[2] ==
          cut(Split::rows, Gemm{Module::qkv, Product::weight_gradient, 768, 4096, 4096, 1, 8}));
  REQUIRE(gemms[3] == cut(Split::columns, Gemm{Module::proj, Product::forward, 4096, 4096, 512}));
  // Gate and up in one: 2 x 14336 / 8.
  REQUIRE(gemms[6] == cut(Split::rows, Gemm{Module::fc1, Product::forward, 4096, 3584, 4096}));
  REQUIRE(gemms[9] ==
          cut(Split::columns, Gemm{Module::fc2, Product::forward, 4096, 4096, 14336 / 8}));
}

TEST_CASE("runtimes without joint projections run each linear alone") {
  const std::vector<Gemm> gemms =
      layer_gemms(problem(Runtime::fsdp2, "llama3-8b", {}), LayerKind::dense);
  REQUIRE(gemms.size() == 21);  // three for each of seven linears
  REQUIRE(gemms[3] == cut(Split::rows, Gemm{Module::k_proj, Product::forward, 4096, 1024, 4096}));
}

TEST_CASE("experts are one grouped GEMM over the tokens that reach them") {
  const Problem p = problem(Runtime::megatron, "mixtral-8x7b", {.dp = 4, .ep = 4});
  const std::vector<Gemm> gemms = layer_gemms(p, LayerKind::moe);
  const auto fc1 = std::ranges::find(gemms, Module::fc1, &Gemm::module);
  // Two of eight experts, each with 2 x 4096 / 2 of the 8192 copies of tokens.
  REQUIRE(*fc1 == Gemm{Module::fc1, Product::forward, 4096, 28672, 4096, 2});
}

TEST_CASE("what the ranks multiply adds up to the model's FLOPs") {
  const auto require_equal = [](const Problem& p, LayerKind kind) {
    const std::vector<Gemm> gemms = layer_gemms(p, kind);
    const double model = layer_linear_flops(p.model, kind, p.training.sequence_length);
    const auto ranks = static_cast<double>(p.layout.tp * p.layout.cp);
    CAPTURE(p.model.name, p.layout.tp, p.layout.ep);
    for (const Product product :
         {Product::forward, Product::input_gradient, Product::weight_gradient}) {
      REQUIRE(ranks * flops_of(gemms, product) == Approx(model).epsilon(1e-12));
    }
  };
  for (const Runtime runtime : {Runtime::megatron, Runtime::fsdp2}) {
    for (const std::int64_t tp : {1, 2, 8}) {
      const Layout layout{.tp = tp, .cp = 2, .sequence_parallel = tp > 1};
      require_equal(problem(runtime, "llama3-70b", layout), LayerKind::dense);
      require_equal(problem(runtime, "gpt3-175b", layout), LayerKind::dense);
    }
    for (const std::int64_t ep : {1, 8, 64}) {
      const Layout layout{.dp = 64, .ep = ep};
      require_equal(problem(runtime, "deepseek-v3", layout), LayerKind::moe);
      require_equal(problem(runtime, "deepseek-v3", layout), LayerKind::dense);
    }
  }
}

TEST_CASE("parts of the head multiply what the whole one does, of fewer tokens each") {
  Problem p = problem(Runtime::fsdp2, "llama3-8b", {.tp = 2, .cp = 2});
  p.runtime.fsdp2.loss_chunks = 1;
  const std::vector<Gemm> whole = head_gemms(p);
  p.runtime.fsdp2.loss_chunks = 8;
  const std::vector<Gemm> part = head_gemms(p);
  REQUIRE(part.front() == cut(Split::vocabulary, Gemm{Module::output_layer, Product::forward,
                                                      2048 / 8, 128256 / 2, 4096}));
  REQUIRE(part.back().k == 2048 / 8);
  REQUIRE(whole.size() == part.size());
  for (std::size_t i = 0; i < whole.size(); ++i) REQUIRE(flops(whole[i]) == 8 * flops(part[i]));
}

TEST_CASE("a tied head multiplies by the embedding, over the padded vocabulary") {
  const Problem p = problem(Runtime::megatron, "gpt2", {.tp = 2});
  // 50257 rows padded to a multiple of 128 x 2.
  REQUIRE(
      head_gemms(p).front() ==
      cut(Split::vocabulary, Gemm{Module::output_layer, Product::forward, 4096, 50432 / 2, 768}));
}
