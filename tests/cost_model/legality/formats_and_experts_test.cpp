// Rules of number formats, of how tokens reach their experts, and of what waits on the host.
#include "cost_model/legality/legality.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

std::string broken_rule(const Problem& p) {
  const auto violation = first_violation(p);
  return violation ? std::string(violation->rule) : "";
}

}  // namespace

TEST_CASE("a GPU must have the number format") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {}, "V100-32GB");
  REQUIRE(broken_rule(p) == "G-precision");
  p.training.precision = Precision::fp16;
  REQUIRE(broken_rule(p).empty());
  p = problem(Runtime::megatron, "llama3-8b", {}, "A100-80GB");
  p.training.precision = Precision::fp8;
  REQUIRE(broken_rule(p) == "G-precision");
}

TEST_CASE("FSDP2 computes in the format that it gathers") {
  Problem p = problem(Runtime::fsdp2, "llama3-8b", {.dp = 8, .zero = ZeroStage::parameters});
  p.runtime.fsdp2.mixed_precision_bytes = 4;
  for (const Precision narrow : {Precision::bf16, Precision::fp16}) {
    p.training.precision = narrow;
    REQUIRE(broken_rule(p) == "T-gathered-format");
  }
  p.training.precision = Precision::fp32;
  REQUIRE(broken_rule(p).empty());
}

TEST_CASE("4-bit products and scales of 32 elements need Blackwell, 4 bits Megatron-Core too") {
  const auto rule = [](Runtime runtime, std::string_view gpu, Precision precision) {
    Problem p = problem(runtime, "llama3-8b", {.dp = 8, .zero = ZeroStage::parameters}, gpu);
    p.training.precision = precision;
    p.runtime.megatron.fp8_recipe = Fp8Recipe::mxfp8;
    return broken_rule(p);
  };
  REQUIRE(rule(Runtime::megatron, "B200", Precision::nvfp4).empty());
  REQUIRE(rule(Runtime::megatron, "H100-80GB", Precision::nvfp4) == "G-precision");
  REQUIRE(rule(Runtime::fsdp2, "B200", Precision::nvfp4) == "G-nvfp4");
  REQUIRE(rule(Runtime::megatron, "B200", Precision::fp8).empty());
  REQUIRE(rule(Runtime::megatron, "H100-80GB", Precision::fp8) == "M-fp8-recipe");
}

TEST_CASE("layers go to the host without recompute and without a pipeline") {
  const auto rule = [](const Layout& layout, std::int64_t layers) {
    Problem p = problem(Runtime::megatron, "llama3-8b", layout);
    p.runtime.megatron.cpu_offloading_num_layers = layers;
    return broken_rule(p);
  };
  REQUIRE(rule({}, 31).empty());
  REQUIRE(rule({}, 32) == "M-offloaded-layers");
  REQUIRE(rule({.pp = 2}, 8) == "M-offloaded-layers");
  REQUIRE(rule({.recompute = Recompute::full}, 8) == "M-offloaded-layers");
}

TEST_CASE("tensors of modules wait on the host where Megatron-Core can move them") {
  using enum OffloadModule;
  const auto rule = [](unsigned modules, const Layout& layout, auto&& change) {
    Problem p = problem(Runtime::megatron, "mixtral-8x7b", layout);
    p.runtime.megatron.offload_modules = modules;
    change(p.runtime.megatron);
    return broken_rule(p);
  };
  const auto with = [&](unsigned modules, auto&& change) { return rule(modules, {}, change); };
  const auto as_is = [](MegatronSettings&) {};
  const std::string_view refused = "M-offloaded-modules";
  const unsigned attention = bit_of(qkv_linear) | bit_of(core_attn) | bit_of(attn_proj);
  const unsigned experts = bit_of(expert_fc1) | bit_of(moe_act);
  REQUIRE(with(attention | experts, as_is).empty());
  REQUIRE(with(bit_of(attn_proj), as_is) == refused);
  REQUIRE(with(bit_of(fused_group_mlp), as_is) == refused);
  const auto fused = [](MegatronSettings& set) { set.use_transformer_engine_op_fuser = true; };
  REQUIRE(with(bit_of(fused_group_mlp), fused).empty());
  REQUIRE(with(bit_of(fused_group_mlp) | bit_of(moe_act), fused) == refused);
  REQUIRE(with(attention, [](MegatronSettings& set) { set.cpu_offloading_num_layers = 1; }) ==
          refused);
  REQUIRE(with(attention, [](MegatronSettings& set) {
            set.pipeline_code = PipelineCode::zero_bubble;
          }) == refused);
  REQUIRE(with(attention, [](MegatronSettings& set) { set.cuda_graph_impl = CudaGraphs::local; }) ==
          refused);
  Problem local = problem(Runtime::megatron, "mixtral-8x7b", {});
  local.runtime.megatron.offload_modules = attention;
  local.runtime.megatron.transformer_engine_version = MegatronSettings::engine_beside;
  local.training.attention = AttentionKernel::unfused;
  REQUIRE(broken_rule(local) == refused);
  REQUIRE(rule(attention, {.recompute = Recompute::full}, as_is) == refused);
  REQUIRE(with(attention, [](MegatronSettings& set) { set.activation_offload_fraction = 0; }) ==
          refused);
  const auto again = [](MegatronSettings& set) {
    set.recompute_modules = bit_of(RecomputeModule::moe);
  };
  REQUIRE(rule(attention, {.recompute = Recompute::selective}, again).empty());
  REQUIRE(rule(experts, {.recompute = Recompute::selective}, again) == refused);
}

TEST_CASE("attention in 8 bits needs products in fewer than 16") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {}, "B200");
  p.runtime.megatron.fp8_dot_product_attention = true;
  REQUIRE(broken_rule(p) == "M-fp8-attention");
  p.training.precision = Precision::nvfp4;
  REQUIRE(broken_rule(p).empty());
}

TEST_CASE("Megatron's own layers multiply in 16 bits") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {}, "B200");
  for (const Precision precision : {Precision::fp8, Precision::nvfp4}) {
    p.training.precision = precision;
    p.runtime.megatron.transformer_engine_version = 210;
    REQUIRE(broken_rule(p).empty());
    for (const auto engine : {MegatronSettings::engine_beside, MegatronSettings::no_engine}) {
      p.runtime.megatron.transformer_engine_version = engine;
      REQUIRE(broken_rule(p) == "M-fp8-own-layers");
    }
  }
  p.training.precision = Precision::bf16;
  p.training.attention = AttentionKernel::unfused;
  REQUIRE(broken_rule(p).empty());
}

TEST_CASE("an output layer in 8 bits needs scales of 32 elements and a weight of its own") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {}, "B200");
  p.runtime.megatron.fp8_output_proj = true;
  REQUIRE(broken_rule(p) == "M-fp8-output-layer");
  p.training.precision = Precision::fp8;
  REQUIRE(broken_rule(p) == "M-fp8-output-layer");
  p.runtime.megatron.fp8_recipe = Fp8Recipe::mxfp8;
  REQUIRE(broken_rule(p).empty());
  p.model.tied_embeddings = true;
  REQUIRE(broken_rule(p) == "M-fp8-output-layer");
}

TEST_CASE("flex dispatch needs experts, its overlap a group of them and chunks in a pipeline") {
  const auto rule = [](std::string_view model, const Layout& layout, auto ask) {
    Problem p = problem(Runtime::megatron, model, layout, "H100-80GB");
    ask(p.runtime.megatron);
    return broken_rule(p);
  };
  const auto flex = [](MegatronSettings& set) {
    set.moe_token_dispatcher_type = TokenDispatcher::flex;
  };
  REQUIRE(rule("llama3-8b", {}, flex) == "M-dispatcher");
  REQUIRE(rule("mixtral-8x7b", {.dp = 8, .ep = 8}, flex).empty());
  const auto beside = [](MegatronSettings& set) { set.overlap_moe_expert_parallel_comm = true; };
  REQUIRE(rule("llama3-8b", {}, beside) == "M-dispatcher");
  REQUIRE(rule("mixtral-8x7b", {.dp = 8}, beside) == "M-expert-overlap");
  REQUIRE(rule("mixtral-8x7b", {.dp = 8, .ep = 8}, beside).empty());
  REQUIRE(rule("mixtral-8x7b", {.dp = 8, .pp = 2, .ep = 8}, beside) == "M-expert-overlap");
  REQUIRE(rule("mixtral-8x7b", {.dp = 8, .ep = 8}, [](MegatronSettings& set) {
            set.delay_wgrad_compute = true;
          }) == "M-expert-overlap");
}

TEST_CASE("layers whose dispatch runs beside others are not run again as a whole") {
  const auto rule = [](Recompute recompute, RecomputeModule module) {
    Problem p =
        problem(Runtime::megatron, "mixtral-8x7b", {.dp = 8, .ep = 8, .recompute = recompute});
    p.runtime.megatron.overlap_moe_expert_parallel_comm = true;
    p.runtime.megatron.recompute_modules = bit_of(module);
    return broken_rule(p);
  };
  REQUIRE(rule(Recompute::none, RecomputeModule::moe).empty());
  REQUIRE(rule(Recompute::full, RecomputeModule::layernorm) == "M-expert-overlap-recompute");
  REQUIRE(rule(Recompute::selective, RecomputeModule::moe) == "M-expert-overlap-recompute");
  REQUIRE(rule(Recompute::selective, RecomputeModule::layernorm).empty());
}
