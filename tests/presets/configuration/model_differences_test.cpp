// Whether an exported file builds the model that was asked for, and what it says where not.
#include "presets/configuration/model_differences.hpp"

#include "presets/configuration.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

namespace zeroplan {
namespace {

using Words = std::vector<std::string>;

ExportedConfiguration for_megatron(const std::string& model) {
  return export_configuration(tests::problem(Runtime::megatron, model, {}),
                              ConfigurationFormat::megatron);
}

TEST_CASE("a model differs from itself in nothing, and in what is changed in that alone") {
  const ModelSpec model = find_model("deepseek-v3").spec;
  REQUIRE(model_differences(model, model).empty());
  ModelSpec other = model;
  other.name = other.family = "another";
  REQUIRE(model_differences(model, other).empty());
  other.layers = 60;
  other.moe->router_bias = false;
  REQUIRE(model_differences(model, other) == Words{"60 layers, not 61", "no bias of the router"});
  other = model;
  other.attention.mla->kv_lora_rank = 256;
  REQUIRE(model_differences(model, other) == Words{"no such latents of attention"});
  other = model;
  std::swap(other.layer_kinds.front(), other.layer_kinds.back());
  REQUIRE(model_differences(model, other) == Words{"no same order of layers of each kind"});
}

TEST_CASE("layers with linear attention tell models apart") {
  const ModelSpec model = find_model("qwen3.5-9b").spec;
  REQUIRE(model_differences(model, model).empty());
  ModelSpec other = model;
  std::swap(other.layer_kinds[2], other.layer_kinds[3]);
  CHECK(model_differences(model, other) == Words{"no same order of layers of each kind"});
  other = model;
  other.linear_attention->value_heads = 64;
  CHECK(model_differences(model, other) == Words{"no such linear attention"});
  other = model;
  other.attention.output_gate = false;
  CHECK(model_differences(model, other) == Words{"no gate of the attention's output"});
}

TEST_CASE("Megatron's arguments build the model, or the export says what they cannot") {
  for (const char* same : {"llama3-8b", "deepseek-v3", "glm-4.5", "qwen2.5-7b", "mixtral-8x7b",
                           "nemotron4-340b", "starcoder2-7b", "glm-4.7-flash"}) {
    INFO(same);
    REQUIRE(for_megatron(same).other_model.empty());
  }
  REQUIRE(for_megatron("gpt-oss-20b").other_model == Words{"no bias of the router"});
  REQUIRE(for_megatron("pythia-1b").other_model == Words{"no parallel attention and MLP"});
  REQUIRE(for_megatron("bloom-7b1").other_model == Words{"no norm of the embedding"});
  REQUIRE(for_megatron("gemma2-9b").other_model == Words{"2 norms a layer, not 4"});
  REQUIRE(for_megatron("minimax-m2").other_model == Words{"no norm of all queries at once"});
  REQUIRE(for_megatron("olmo2-7b").other_model ==
          Words{"no norm of all queries at once", "no norms after each half"});
}

TEST_CASE("arguments say what Megatron-LM would not find out") {
  REQUIRE_THAT(for_megatron("nemotron4-15b").text, ContainsSubstring("--squared-relu"));
  REQUIRE_THAT(for_megatron("starcoder2-7b").text, !ContainsSubstring("--squared-relu"));
  // 20 heads do not divide 2,048 values, 128 divide DeepSeek-V3's 7,168.
  REQUIRE_THAT(for_megatron("glm-4.7-flash").text, ContainsSubstring("--kv-channels 256"));
  REQUIRE_THAT(for_megatron("deepseek-v3").text, !ContainsSubstring("--kv-channels"));
}

TEST_CASE("groups of experts are told to Megatron where a token chooses among them") {
  const std::string text = for_megatron("deepseek-v3").text;
  REQUIRE_THAT(text, ContainsSubstring("--moe-router-num-groups 8"));
  REQUIRE_THAT(text, ContainsSubstring("--moe-router-group-topk 4"));
  REQUIRE_THAT(for_megatron("mixtral-8x7b").text, !ContainsSubstring("router-num-groups"));
}

TEST_CASE("gpt-oss is told to Megatron by its sinks, its rotation, its biases and its gate") {
  const std::string text = for_megatron("gpt-oss-20b").text;
  for (const char* argument :
       {"--softmax-type learnable", "--position-embedding-type yarn", "--quick-geglu",
        "--glu-linear-offset 1", "--activation-func-clamp-value 7", "--window-size 127,0",
        "--window-attn-skip-freq 2"}) {
    INFO(argument << " in\n" << text);
    REQUIRE_THAT(text, ContainsSubstring(argument));
  }
  REQUIRE_THAT(text, !ContainsSubstring("--disable-bias-linear"));
  REQUIRE_THAT(text, !ContainsSubstring("--swiglu"));
}

}  // namespace
}  // namespace zeroplan
