// Transformers' experts and routers, as its code ran on fake tensors: MiB allocated at the peak,
// but for workspaces, and what a layer allocates.
#include "cost_model/kernel/layer_gemms.hpp"
#include "cost_model/runtime/fsdp2/recipe.hpp"
#include "tests/catch.hpp"
#include "tests/cost_model/runtime/pytorch_layers/huggingface.hpp"
#include "tests/tracked.hpp"

using namespace zeroplan;
using tests::problem_of;
using tests::tracked_mib;

// 16 experts of Llama 4 multiply all tokens where torchtitan's multiply those that were sent.
TEST_CASE("products of Llama 4's experts are computed for each expert and token") {
  Problem p = problem_of({Runtime::fsdp2, "llama4-scout", 4, 8, 2048, 1, Recompute::none, 0});
  const auto experts = [&] {
    std::int64_t rows = 0;
    for (const Gemm& gemm : layer_gemms(p, LayerKind::moe)) {
      if (gemm.groups > 1 && gemm.product == Product::forward) rows += gemm.m * gemm.groups;
    }
    return rows;
  };
  const std::int64_t repeated = experts();
  p.runtime.fsdp2.layers = LayerCode::torchtitan;
  CHECK(repeated == 16 * experts());
}

// Sigmoids in fp32 and scores in 16 bits of each expert and token, one place in int64 of each
// token.
TEST_CASE("routers of Llama 4 keep a score for each expert and token") {
  const Problem p = problem_of({Runtime::fsdp2, "llama4-scout", 4, 8, 2048, 1, Recompute::none, 0});
  const Block block =
      code_of(p).block(p, weight_inventory(p.model), BlockKind::layer, LayerKind::moe, 0);
  const auto bytes = [&](std::string_view name) {
    const auto found = std::ranges::find(block.tensors, name, &TensorSpec::name);
    REQUIRE(found != block.tensors.end());
    return found->bytes;
  };
  CHECK(bytes("router scores") == Bytes{(4 + 2) * 16 * 2048});
  CHECK(bytes("chosen experts") == Bytes{8 * 2048});
  CHECK(bytes("repeated tokens") == Bytes{std::int64_t{2} * 16 * 2048 * 5120});
}

// integrations/moe.py grouped_mm_experts_forward; DeepSeek's scores are fp32.
TEST_CASE("what Transformers' experts give is weighed and put in order while both are there") {
  const Problem p = problem_of({Runtime::fsdp2, "deepseek-v3", 4, 64, 4096, 4, Recompute::none, 0});
  CHECK(tracked_mib(p) == Approx(90'039.3).epsilon(0.001));
}

TEST_CASE(
    "a sum of weighed tokens is in fp32 where the scores are, and has no copy of its own else") {
  for (const std::string_view model : {"deepseek-v3", "qwen3-30b-a3b"}) {
    const Problem p = problem_of({Runtime::fsdp2, model, 4, 64, 4096, 1, Recompute::none, 0});
    const Block block = code_of(p).block(p, weight_inventory(p.model), BlockKind::layer,
                                         LayerKind::moe, RepeatSet{});
    const auto sums =
        std::ranges::count(block.tensors, "sum of weighed tokens in fp32", &TensorSpec::name);
    CHECK(sums == (model == "deepseek-v3"));
  }
}

// transformers 5.24.0 modeling_gpt_oss.py _apply_gate: a bounded gate, its sigmoid and up plus one
// are kept beside what SwiGLU keeps.
TEST_CASE("experts whose activation is bounded keep what its operators read") {
  Problem p = problem_of({Runtime::fsdp2, "gpt-oss-20b", 4, 8, 2048, 1, Recompute::none, 0});
  p.layout.zero = ZeroStage::gradients;
  p.training.attention = AttentionKernel::unfused;
  p.model.attention.windowed_layers = 2;
  const double bounded = tracked_mib(p);
  p.model.moe->clamped = false;
  const double branch = 2. * 4 * 2048 * 2880 / mebi;
  CHECK(bounded - tracked_mib(p) == Approx(4 * 3 * branch).epsilon(0.001));
}

TEST_CASE("DeepSeek's and GLM's routers work in fp32, and their shared experts come last") {
  for (const char* model : {"deepseek-v2-lite", "glm-4.5-air"}) {
    CAPTURE(model);
    Problem p = problem_of({Runtime::fsdp2, model, 4, 8, 2048, 1, Recompute::none, 0});
    const EagerStyle style = fsdp2_recipe(p).code.style;
    CHECK(style.widens_router);
    CHECK(style.shared_last);
    CHECK(style.joins_heads);
    CHECK_FALSE(fsdp2_recipe(problem_of({Runtime::fsdp2, "qwen3-30b-a3b", 4, 8, 2048, 1,
                                         Recompute::none, 0}))
                    .code.style.widens_router);
  }
}
