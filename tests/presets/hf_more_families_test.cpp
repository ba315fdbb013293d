// Small configurations with as many parameters as transformers 5.24.0 counts of each, and why
// others are not read.
#include <string>

#include "cost_model/rank/weights.hpp"
#include "presets/hf_config.hpp"
#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"

using namespace zeroplan;

namespace {

struct Counted {
  const char* model_type;
  const char* rest;  // the keys after `sizes`
  std::int64_t parameters;
};

ModelSpec read_small(const std::string& model_type, const std::string& rest) {
  constexpr const char* sizes =
      R"("hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4,
         "num_key_value_heads": 2, "intermediate_size": 20, "vocab_size": 50,
         "tie_word_embeddings": false)";
  return read_hf_config(
      "{\"model_type\": \"" + model_type + "\", " + sizes + (rest.empty() ? "" : ", " + rest) + "}",
      "c.json", nullptr);
}

const std::string scans = R"("mamba_n_heads": 6, "mamba_d_head": 8, "mamba_d_state": 4,
    "mamba_n_groups": 1, "mamba_d_conv": 4, "mamba_chunk_size": 256, )";

}  // namespace

TEST_CASE("dense families have the parameters of their class") {
  const Counted counted[] = {
      {"cohere", "", 12'000},
      {"cohere", R"("use_qk_norm": true, "attention_bias": true)", 12'324},
      {"cohere2", R"("sliding_window": 8)", 12'000},
      {"glm", R"("head_dim": 6)", 12'216},
      {"glm", R"("head_dim": 6, "attention_bias": false)", 12'072},
      {"glm4", R"("head_dim": 6)", 12'360},
      {"ernie4_5", R"("head_dim": 6)", 12'072},
      {"ernie4_5", R"("head_dim": 6, "use_bias": true)", 12'480},
      {"helium", R"("head_dim": 6)", 12'072},
      {"helium", R"("head_dim": 6, "attention_bias": true, "mlp_bias": true)", 12'408},
      {"hunyuan_v1_dense", R"("head_dim": 6)", 12'108},
      {"hyperclovax", R"("head_dim": 6)", 12'216},
      {"hyperclovax", R"("head_dim": 6, "use_post_norm": false, "mlp_bias": true)", 12'264},
      {"internlm3", R"("head_dim": 8)", 13'800},
      {"stablelm", "", 12'240},
      {"stablelm", R"("use_qkv_bias": true, "use_parallel_residual": true)", 12'240},
      {"stablelm", R"("qk_layernorm": true)", 12'348},
      {"youtu", R"("kv_lora_rank": 6, "q_lora_rank": 5, "qk_nope_head_dim": 4,
                   "qk_rope_head_dim": 2, "v_head_dim": 3)",
       9'585}};
  for (const Counted& c : counted) {
    CAPTURE(c.model_type, c.rest);
    CHECK(parameter_count(read_small(c.model_type, c.rest)) == c.parameters);
  }
}

TEST_CASE("families with experts have the parameters of their class") {
  const Counted counted[] = {
      {"afmoe", R"("head_dim": 6, "num_dense_layers": 1, "num_experts": 4,
                   "moe_intermediate_size": 10, "num_shared_experts": 2)",
       19'940},
      {"ernie4_5_moe", R"("moe_num_experts": 4, "moe_intermediate_size": 10,
                          "moe_num_shared_experts": 2, "moe_layer_start_index": 1)",
       18'032},
      {"ernie4_5_moe", R"("moe_num_experts": 4, "moe_intermediate_size": 10,
                          "moe_num_shared_experts": 0, "moe_layer_start_index": 0,
                          "moe_layer_end_index": 1, "moe_layer_interval": 2)",
       13'612},
      {"exaone_moe", R"("head_dim": 6, "num_experts": 4, "moe_intermediate_size": 10,
                        "num_shared_experts": 1, "first_k_dense_replace": 1)",
       16'628},
      {"flex_olmo", R"("num_experts": 4)", 25'428},
      {"granitemoe", R"("num_local_experts": 4)", 25'320},
      {"granitemoeshared", R"("num_local_experts": 4, "shared_intermediate_size": 14)", 28'344},
      {"hunyuan_v1_moe", R"("head_dim": 6, "num_experts": 4, "moe_topk": [2, 2, 2])", 29'676},
      {"hy_v3", R"("head_dim": 6, "num_experts": 4, "moe_intermediate_size": 10,
                   "num_shared_experts": 1, "first_k_dense_replace": 1)",
       16'628},
      {"phimoe", R"("num_local_experts": 4, "attention_bias": true, "lm_head_bias": true)", 25'754},
      {"solar_open", R"("head_dim": 6, "n_routed_experts": 4, "moe_intermediate_size": 10,
                        "n_shared_experts": 1)",
       18'852}};
  for (const Counted& c : counted) {
    CAPTURE(c.model_type, c.rest);
    const std::string chosen = R"(, "num_experts_per_tok": 2)";
    CHECK(parameter_count(read_small(c.model_type, c.rest + chosen)) == c.parameters);
  }
}

TEST_CASE("Granite's hybrids scan or attend, beside experts and an MLP or that alone") {
  const std::string mixed = R"("layer_types": ["mamba", "attention", "mamba"], )";
  const std::string shared = R"("shared_intermediate_size": 14, "num_local_experts": )";
  const ModelSpec experts =
      read_small("granitemoehybrid", scans + mixed + shared + R"(4, "num_experts_per_tok": 2)");
  CHECK(parameter_count(experts) == 33'164);
  CHECK(experts.layer_kinds ==
        std::vector{LayerKind::linear_moe, LayerKind::moe, LayerKind::linear_moe});
  CHECK_FALSE(experts.attention.rotary);
  const ModelSpec dense = read_small("granitemoehybrid", scans + mixed + shared + "0");
  CHECK(parameter_count(dense) == 15'596);
  const ModelSpec attends = read_small(
      "granitemoehybrid", scans + R"("layer_types": ["attention", "attention", "attention"],
                 "position_embedding_type": "rope", )" +
                              shared + "0");
  CHECK(parameter_count(attends) == 10'776);
  CHECK(attends.attention.rotary);
  CHECK_FALSE(attends.state_space);
}

TEST_CASE("new families differ where their layers do") {
  const ModelSpec cohere = read_small("cohere", "");
  CHECK((cohere.parallel_residual && cohere.norms_per_layer == 1 && !has_norm_bias(cohere)));
  CHECK(read_small("cohere2", R"("sliding_window": 8)").attention.windowed_layers == 3);
  CHECK(has_norm_bias(read_small("stablelm", "")));
  const std::string trinity = R"("head_dim": 6, "num_experts": 4, "num_experts_per_tok": 2,
      "moe_intermediate_size": 10, "sliding_window": 8, "global_attn_every_n_layers": 3)";
  const ModelSpec afmoe = read_small("afmoe", trinity);
  CHECK((afmoe.attention.output_gate && afmoe.norms_per_layer == 4));
  CHECK(afmoe.attention.windowed_layers == 2);
  CHECK(afmoe.moe->router_bias);
}

TEST_CASE("what a family's published models do not have is refused") {
  const auto error = [](const char* type, const std::string& rest) {
    return error_text([&] { read_small(type, rest); });
  };
  const std::string experts = R"("head_dim": 6, "num_experts": 4, "moe_topk": )";
  CHECK(says(error("hunyuan_v1_moe", experts + "[2, 1, 2]"), "same in all layers"));
  CHECK(says(error("internlm3", R"("head_dim": 6, "qkv_bias": true)"), "'qkv_bias' must be false"));
  CHECK(says(error("ernie4_5_moe", R"("moe_num_experts": 4, "moe_k": 2,
      "moe_intermediate_size": 10, "use_bias": true)"),
             "'use_bias' must be false"));
  CHECK(says(error("afmoe", R"("head_dim": 6, "num_experts": 4, "num_experts_per_tok": 2,
      "moe_intermediate_size": 10, "attention_bias": true)"),
             "'attention_bias' must be false"));
  // The head of phi and of phimoe has a bias.
  const auto phi = [](const char* ties) {
    return error_text([&] {
      read_hf_config(std::string(R"({"model_type": "phi", "n_embd": 8, "n_layer": 2, "n_head": 2,
        "vocab_size": 16, "intermediate_size": 32, "tie_word_embeddings": )") +
                         ties + "}",
                     "c.json", nullptr);
    });
  };
  CHECK(says(phi("true"), "tied head with a bias"));
  CHECK(phi("false").empty());
}

TEST_CASE("families that have Llama's keys and other layers are refused by name") {
  const std::string llama = R"("rms_norm_eps": 1e-6, "rope_theta": 10000.0, "head_dim": 6)";
  const auto error = [&](const char* type, const std::string& rest) {
    return error_text([&] { read_small(type, llama + rest); });
  };
  CHECK(says(error("apertus", ""), "xIELU"));
  CHECK(says(error("bitnet", ""), "norms inside attention"));
  CHECK(says(error("diffllama", ""), "difference of two attentions"));
  CHECK(says(error("falcon_h1", R"(, "mamba_d_ssm": 8)"), "beside a state space"));
  CHECK(says(error("granite_swa", ""), "sinks"));
  CHECK(says(error("longcat_flash", R"(, "kv_lora_rank": 6)"), "two attentions"));
  CHECK(says(error("mimo_v2_flash", R"(, "n_routed_experts": 4)"), "other numbers of heads"));
  CHECK(says(error("olmo", ""), "norms without weights"));
  CHECK(says(error("deepseek_v32", R"(, "kv_lora_rank": 6, "index_topk": 8)"), "chooses the keys"));
  CHECK(says(error("glm_moe_dsa", R"(, "kv_lora_rank": 6, "index_topk": 8)"), "chooses the keys"));
  CHECK(says(error("kimi_linear", R"(, "kv_lora_rank": 6, "linear_attn_config": {}, "layer_types":
      ["linear_attention", "linear_attention", "full_attention"])"),
             "linear attention"));
  CHECK(says(error("lfm2", R"(, "conv_L_cache": 3)"), "convolution"));
  CHECK(says(error("jamba", R"(, "mamba_d_state": 16)"), "state space"));
  CHECK(says(error("zamba2", R"(, "mamba_d_state": 16)"), "state space"));
  CHECK(says(error("gemma3n_text", R"(, "hidden_size_per_layer_input": 8)"), "each layer"));
  CHECK(says(error("gemma4_text", ""), "other widths"));
}

// Or in hf_families_test.cpp, or in hf_hybrids_test.cpp.
TEST_CASE("every supported model_type is among the cases here") {
  CHECK(supported_model_types() == std::vector<std::string>{"afmoe",
                                                            "arcee",
                                                            "bamba",
                                                            "bloom",
                                                            "cohere",
                                                            "cohere2",
                                                            "deepseek_v2",
                                                            "deepseek_v3",
                                                            "dots1",
                                                            "ernie4_5",
                                                            "ernie4_5_moe",
                                                            "exaone4",
                                                            "exaone_moe",
                                                            "falcon",
                                                            "flex_olmo",
                                                            "gemma",
                                                            "gemma2",
                                                            "gemma3",
                                                            "gemma3_text",
                                                            "glm",
                                                            "glm4",
                                                            "glm4_moe",
                                                            "glm4_moe_lite",
                                                            "glm4v_moe",
                                                            "gpt2",
                                                            "gpt_neo",
                                                            "gpt_neox",
                                                            "gpt_oss",
                                                            "gptj",
                                                            "granite",
                                                            "granitemoe",
                                                            "granitemoehybrid",
                                                            "granitemoeshared",
                                                            "helium",
                                                            "hunyuan_v1_dense",
                                                            "hunyuan_v1_moe",
                                                            "hy_v3",
                                                            "hyperclovax",
                                                            "internlm3",
                                                            "kimi_k2",
                                                            "llama",
                                                            "llama4",
                                                            "llama4_text",
                                                            "megatron_gpt",
                                                            "minimax_m2",
                                                            "ministral",
                                                            "ministral3",
                                                            "mistral",
                                                            "mistral3",
                                                            "mixtral",
                                                            "nemotron",
                                                            "nemotron_h",
                                                            "olmo2",
                                                            "olmo3",
                                                            "olmoe",
                                                            "opt",
                                                            "phi",
                                                            "phi3",
                                                            "phimoe",
                                                            "qwen2",
                                                            "qwen2_5_vl",
                                                            "qwen2_moe",
                                                            "qwen2_vl",
                                                            "qwen3",
                                                            "qwen3_5",
                                                            "qwen3_5_moe",
                                                            "qwen3_5_moe_text",
                                                            "qwen3_5_text",
                                                            "qwen3_moe",
                                                            "qwen3_next",
                                                            "qwen3_vl",
                                                            "qwen3_vl_moe",
                                                            "seed_oss",
                                                            "smollm3",
                                                            "solar_open",
                                                            "stablelm",
                                                            "starcoder2",
                                                            "youtu"});
}
