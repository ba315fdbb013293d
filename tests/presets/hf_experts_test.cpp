#include <nlohmann/json.hpp>
#include <string>

#include "presets/hf_config.hpp"
#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"

using namespace zeroplan;
using nlohmann::json;

namespace {

json qwen_moe() {
  return {{"model_type", "qwen3_moe"}, {"hidden_size", 64},           {"num_hidden_layers", 4},
          {"num_attention_heads", 4},  {"num_key_value_heads", 2},    {"head_dim", 16},
          {"vocab_size", 256},         {"moe_intermediate_size", 32}, {"num_experts", 8},
          {"num_experts_per_tok", 2},  {"tie_word_embeddings", false}};
}

ModelSpec read(const json& config) {
  return read_hf_config(config.dump(), "c.json", nullptr);
}

/// d and m for each layer.
std::string layers_of(const ModelSpec& model) {
  std::string out;
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    out += kind_of(model, layer) == LayerKind::moe ? 'm' : 'd';
  }
  return out;
}

}  // namespace

TEST_CASE("Qwen places experts by step, except in listed layers") {
  json config = qwen_moe();
  CHECK(layers_of(read(config)) == "mmmm");
  CHECK(read(config).layer_kinds.empty());
  config["intermediate_size"] = 128;
  config["decoder_sparse_step"] = 2;
  CHECK(layers_of(read(config)) == "dmdm");
  config["mlp_only_layers"] = {3};
  CHECK(layers_of(read(config)) == "dmdd");
  config["decoder_sparse_step"] = 5;
  const ModelSpec dense = read(config);
  CHECK_FALSE(dense.moe);
  CHECK(dense.mlp.intermediate_size == 128);
}

TEST_CASE("DeepSeek starts with dense layers, Llama 4 interleaves or lists") {
  json config = json::parse(R"({"model_type": "deepseek_v3", "hidden_size": 64, "vocab_size": 256,
    "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 128, "q_lora_rank": null,
    "kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8,
    "n_routed_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
    "first_k_dense_replace": 1})");
  CHECK(layers_of(read(config)) == "dmmm");
  CHECK(read(config).moe->router_bias);
  CHECK(read(config).moe->router_groups == 1);
  config["n_group"] = 4;
  config["topk_group"] = 2;
  CHECK(read(config).moe->router_groups == 4);
  CHECK(read(config).moe->groups_per_token == 2);
  config["n_group"] = 3;
  CHECK(error_text([&] { read(config); }).find("n_group 3 does not divide 8") != std::string::npos);
  config.erase("n_group");
  config.erase("topk_group");
  config["moe_layer_freq"] = 2;
  CHECK(layers_of(read(config)) == "ddmd");
  config["topk_method"] = "greedy";
  CHECK_FALSE(read(config).moe->router_bias);

  config = qwen_moe();
  config["model_type"] = "llama4_text";
  config["intermediate_size"] = 32;
  config["intermediate_size_mlp"] = 128;
  config["interleave_moe_layer_step"] = 2;
  CHECK(layers_of(read(config)) == "dmdm");
  CHECK(read(config).moe->shared_intermediate_size == 32);
  config["moe_layers"] = {0};
  CHECK(layers_of(read(config)) == "mddd");
}

TEST_CASE("experts that cannot be are refused") {
  const auto text = [](const json& config) { return error_text([&] { read(config); }); };
  json config = qwen_moe();
  config["num_experts_per_tok"] = 9;
  CHECK(text(config) == "c.json: 9 experts a token are more than the 8 experts there are");
  config = qwen_moe();
  config.erase("num_experts");
  CHECK(says(text(config), "no size 'num_experts'; one of num_experts, num_local_experts"));
  config = qwen_moe();
  config.erase("moe_intermediate_size");
  CHECK(text(config) == "c.json: no size 'moe_intermediate_size'");
  config = qwen_moe();
  config["mlp_only_layers"] = {0};  // a dense layer of no known width
  CHECK(text(config) == "c.json: no size 'intermediate_size'");
  config["mlp_only_layers"] = {-1};
  CHECK(says(text(config), "from 0 to 4000, found -1"));
}
