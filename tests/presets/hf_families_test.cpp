// One smallest literal configuration for each model_type, with its parameters counted by hand.
#include <map>
#include <string>

#include "cost_model/rank/weights.hpp"
#include "presets/hf_config.hpp"
#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"

using namespace zeroplan;

namespace {

struct Case {
  const char* model_type;
  const char* rest;  // the keys after model_type
  std::int64_t parameters;
};

// h = 8, two heads of 4, two layers, vocabulary 16 unless the row says otherwise; the counts read
// embedding + positions + head + final norm + layers x (norms + attention + MLP).
constexpr const char* gpt_sizes = R"("n_embd": 8, "n_layer": 2, "n_head": 2, "vocab_size": 16,
                                     "n_positions": 10, "tie_word_embeddings": )";
constexpr const char* llama_sizes =
    R"("hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
       "vocab_size": 16, "intermediate_size": 12, "head_dim": 4, "tie_word_embeddings": false)";

// q and o 8x8, k and v 4x8; a gated MLP of 12; two norms of 8
constexpr std::int64_t llama_attention = 2 * 64 + 2 * 32;
constexpr std::int64_t llama_layer = 2 * 8 + llama_attention + 3 * 96;
constexpr std::int64_t untied_ends = 2 * 16 * 8 + 8;
// four 8x8 with biases; an MLP of 32 with biases; two norms with biases
constexpr std::int64_t gpt_attention = 4 * (64 + 8);
constexpr std::int64_t gpt_mlp = 2 * 256 + 32 + 8;
constexpr std::int64_t gpt_layer = 2 * 16 + gpt_attention + gpt_mlp;

ModelSpec read(const std::string& model_type, const std::string& rest) {
  return read_hf_config("{\"model_type\": \"" + model_type + "\", " + rest + "}", "c.json",
                        nullptr);
}

const std::string gpt = gpt_sizes;
const std::string llama = llama_sizes;

}  // namespace

TEST_CASE("Qwen's hybrids: three layers of linear attention, then one whose output has a gate") {
  const auto spec = [](const char* type, const std::string& rest, const char* value_heads = "4") {
    return read(type, llama + R"(, "linear_num_key_heads": 2, "linear_key_head_dim": 3,
      "linear_value_head_dim": 5, "linear_conv_kernel_dim": 4, "linear_num_value_heads": )" +
                          value_heads + rest);
  };
  // Queries and keys of 6, values and a gate of 20, two rates of 4, all of 8; a convolution of 32
  // channels; a vector of rates, one of decays, a norm of 5; out of 20.
  constexpr std::int64_t linear = (6 + 6 + 20 + 20 + 4 + 4) * 8 + 32 * 4 + 4 + 4 + 5 + 20 * 8;
  // Of queries as many again are the gate's; two norms of 4.
  constexpr std::int64_t full = llama_attention + 64 + 2 * 4;
  constexpr std::int64_t others = 2 * 8 + 3 * 96;
  const ModelSpec alternating = spec("qwen3_5_text", R"(, "full_attention_interval": 2)");
  CHECK(parameter_count(alternating) == untied_ends + linear + full + 2 * others);
  CHECK(alternating.layer_kinds == std::vector{LayerKind::linear_dense, LayerKind::dense});
  CHECK(alternating.attention.output_gate);
  CHECK_FALSE(alternating.linear_attention->joined_projections);
  const ModelSpec usual = spec("qwen3_5_text", "");  // of four
  CHECK(parameter_count(usual) == untied_ends + 2 * (linear + others));
  const ModelSpec listed =
      spec("qwen3_next", R"(, "layer_types": ["full_attention", "linear_attention"],
        "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 6,
        "shared_expert_intermediate_size": 10)");
  CHECK(listed.layer_kinds == std::vector{LayerKind::moe, LayerKind::linear_moe});
  CHECK(listed.linear_attention->joined_projections);
  constexpr std::int64_t experts = 2 * 8 + 4 * 8 + 4 * 3 * 48 + 3 * 80 + 8;
  CHECK(parameter_count(listed) == untied_ends + linear + full + 2 * experts);
  CHECK(active_parameter_count(listed) == parameter_count(listed) - 2 * 2 * 3 * 48);
  const ModelSpec none =
      spec("qwen3_5_text", R"(, "layer_types": ["full_attention", "full_attention"])");
  CHECK_FALSE(none.linear_attention);
  CHECK(none.layer_kinds.empty());
  const auto error = [&](const std::string& rest, const char* value_heads = "4") {
    return error_text([&] { spec("qwen3_5_text", rest, value_heads); });
  };
  CHECK_THAT(error(R"(, "layer_types": ["full_attention"])"),
             ContainsSubstring("lists 1 of 2 layers"));
  CHECK_THAT(error(R"(, "layer_types": ["mamba", "full_attention"])"),
             ContainsSubstring("has 'mamba' for layer 0"));
  CHECK_THAT(error("", "3"), ContainsSubstring("do not divide"));
  const auto wide = [](const char* value_dim) {
    return error_text([&] {
      read("qwen3_5_text", llama + R"(, "linear_num_key_heads": 65536, "linear_key_head_dim": 3,
        "linear_num_value_heads": 65536, "linear_conv_kernel_dim": 4, "linear_value_head_dim": )" +
                               value_dim);
    });
  };
  CHECK(wide("2147483648").find("about 7.9e+15 parameters") != std::string::npos);
  CHECK(wide("1000") == "");
}

TEST_CASE("GPT-2 and its relatives") {
  const auto count = [](const char* type, const std::string& rest) {
    return parameter_count(read(type, rest));
  };
  CHECK(count("gpt2", gpt + "true") == 128 + 80 + 16 + 2 * gpt_layer);
  CHECK(count("megatron_gpt", gpt + "true") == 128 + 80 + 16 + 2 * gpt_layer);
  CHECK(count("gpt_neo", gpt + "true") == 128 + 80 + 16 + 2 * (gpt_layer - 24));  // no q, k, v bias
  CHECK(count("bloom", gpt + "true") == 128 + 16 + 16 + 2 * gpt_layer);  // a norm, no positions
  // one norm, no attention biases, a head with a bias
  CHECK(count("gptj", gpt + "false") == 128 + 128 + 16 + 16 + 2 * (16 + 256 + gpt_mlp));
  CHECK(count("gpt_neox", gpt + "false, \"intermediate_size\": 32") ==
        128 + 128 + 16 + 2 * gpt_layer);
  CHECK(count("phi", gpt + "false, \"intermediate_size\": 32") ==
        128 + 128 + 16 + 16 + 2 * (gpt_layer - 16));
}

TEST_CASE("OPT has two positions more, and its smallest narrow embeddings") {
  const std::string sizes = gpt + "true, \"ffn_dim\": 32, \"word_embed_proj_dim\": ";
  CHECK(parameter_count(read("opt", sizes + "8")) == 128 + 12 * 8 + 16 + 2 * gpt_layer);
  // 16x4 embedding, 4 to 8 and 8 to 4, no final norm
  CHECK(parameter_count(read("opt", sizes + "4, \"do_layer_norm_before\": false")) ==
        64 + 2 * 32 + 12 * 8 + 2 * gpt_layer);
}

TEST_CASE("Falcon shares keys and norms in each of its three architectures") {
  const std::string sizes = gpt + "true";
  // one norm, one key-value head, no biases
  CHECK(parameter_count(read("falcon", sizes)) == 128 + 16 + 2 * (16 + 2 * 64 + 2 * 32 + 512));
  CHECK(parameter_count(read("falcon", sizes + ", \"new_decoder_architecture\": true, "
                                               "\"num_kv_heads\": 2")) ==
        128 + 16 + 2 * (32 + 4 * 64 + 512));
  CHECK(
      parameter_count(read("falcon", sizes + ", \"multi_query\": false, \"parallel_attn\": false, "
                                             "\"bias\": true")) == 128 + 16 + 2 * gpt_layer);
}

TEST_CASE("Llama and its relatives") {
  const auto count = [](const char* type, const std::string& more) {
    return parameter_count(read(type, llama + more));
  };
  for (const char* type : {"llama", "mistral", "ministral", "ministral3", "phi3", "gemma"}) {
    CAPTURE(type);
    CHECK(count(type, "") == untied_ends + 2 * llama_layer);
  }
  CHECK(count("qwen2", "") == untied_ends + 2 * (llama_layer + 8 + 4 + 4));  // q, k, v biases
  CHECK(count("qwen3", "") == untied_ends + 2 * (llama_layer + 4 + 4));      // q and k norms
  CHECK(count("gemma2", "") == untied_ends + 2 * (llama_layer + 16));        // two more norms
  CHECK(count("gemma3_text", "") == untied_ends + 2 * (llama_layer + 16 + 8));
}

TEST_CASE("mixtures of experts") {
  const auto count = [](const char* type, const std::string& more) {
    return parameter_count(read(type, llama + ", \"num_experts_per_tok\": 2" + more));
  };
  constexpr std::int64_t without_mlp = 2 * 8 + llama_attention;
  const std::string small_experts = R"(, "moe_intermediate_size": 6)";  // 3 x 6 x 8 = 144 each
  // router 4x8, four experts of 3x12x8
  CHECK(count("mixtral", R"(, "num_local_experts": 4)") ==
        untied_ends + 2 * (without_mlp + 32 + 4 * 288));
  CHECK(count("qwen3_moe", small_experts + R"(, "num_experts": 4)") ==
        untied_ends + 2 * (without_mlp + 8 + 32 + 4 * 144));
  // q, k, v biases 16, a shared expert of 10 with its gate
  CHECK(count("qwen2_moe", small_experts + R"(, "num_experts": 4,
                           "shared_expert_intermediate_size": 10)") ==
        untied_ends + 2 * (without_mlp + 16 + 32 + 4 * 144 + 240 + 8));
  // biases on q, k, v, o, router and both expert matrices, a sink for each head
  CHECK(count("gpt_oss", R"(, "num_local_experts": 4)") ==
        untied_ends + 2 * (without_mlp + 16 + 8 + 2 + 36 + 4 * (288 + 12 + 12 + 8)));
  // layer 0 dense of 12, layer 1 four experts and one shared, corrections for 4; biases q, k, v
  CHECK(count("glm4_moe", small_experts + R"(, "n_routed_experts": 4, "n_shared_experts": 1,
                          "first_k_dense_replace": 1, "attention_bias": true)") ==
        untied_ends + 2 * (without_mlp + 16) + 288 + 36 + 5 * 144);
  // the same without biases, with norms of 4 for queries and for keys
  CHECK(count("dots1", small_experts + R"(, "n_routed_experts": 4, "n_shared_experts": 1,
                       "first_k_dense_replace": 1)") ==
        untied_ends + 2 * (without_mlp + 8) + 288 + 36 + 5 * 144);
  // norms of all queries, 8, and of all keys, 4; MiniMax's router has corrections for 4
  CHECK(count("olmoe", R"(, "num_experts": 4)") ==
        untied_ends + 2 * (without_mlp + 12 + 32 + 4 * 288));
  CHECK(count("minimax_m2", R"(, "num_local_experts": 4)") ==
        untied_ends + 2 * (without_mlp + 12 + 36 + 4 * 288));
  // layer 0 dense of 20, layer 1 with experts and the shared one of 12
  CHECK(count("llama4_text", R"(, "num_local_experts": 4, "interleave_moe_layer_step": 2,
                             "intermediate_size_mlp": 20)") ==
        untied_ends + 2 * without_mlp + 480 + 32 + 5 * 288);
}

TEST_CASE("layers that experts replace are listed, or those before the first of them") {
  const std::string sizes = llama + R"(, "num_experts_per_tok": 2, "n_routed_experts": 4,
      "moe_intermediate_size": 6, "n_shared_experts": 1, "kv_lora_rank": 6, "qk_nope_head_dim": 4,
      "qk_rope_head_dim": 2, "v_head_dim": 3, "q_lora_rank": 5)";
  const ModelSpec listed =
      read("glm4_moe_lite", sizes + R"(, "mlp_layer_types": ["dense", "sparse"])");
  CHECK(listed == read("glm4_moe_lite", sizes + R"(, "first_k_dense_replace": 1)"));
  CHECK(listed.layer_kinds == std::vector{LayerKind::dense, LayerKind::moe});
  CHECK(says(error_text([&] { read("glm4_moe_lite", sizes); }), "first_k_dense_replace"));
}

TEST_CASE("squared ReLU has one projection before it") {
  constexpr std::int64_t layer = 2 * 8 + llama_attention + 2 * 12 * 8;
  for (const char* type : {"arcee", "nemotron"}) {
    CAPTURE(type);
    const ModelSpec model = read(type, llama);
    CHECK(model.mlp.squared_relu);
    // Nemotron's norms, three of them a layer and the last, have biases.
    const std::int64_t biases = model.norm == Norm::layer ? 5 * 8 : 0;
    CHECK(parameter_count(model) == untied_ends + 2 * layer + biases);
  }
  CHECK_FALSE(read("llama", llama).mlp.squared_relu);
}

TEST_CASE("relatives of Llama differ in biases and ties") {
  const std::int64_t plain = parameter_count(read("llama", llama));
  for (const char* type : {"smollm3", "granite"}) {
    CAPTURE(type);
    CHECK(parameter_count(read(type, llama)) == plain);
  }
  const std::string ties = R"(, "tie_word_embeddings": false)";
  REQUIRE(llama.ends_with(ties));
  const std::string silent = llama.substr(0, llama.size() - ties.size());
  CHECK(read("smollm3", silent).tied_embeddings);
  CHECK_FALSE(read("granite", silent).tied_embeddings);
  // q, k and v have biases of their own, the output another key.
  const std::int64_t qkv = parameter_count(read("qwen2", llama)) - plain;
  CHECK(parameter_count(read("seed_oss", llama)) == plain + qkv);
  CHECK(parameter_count(read("seed_oss", llama + R"(, "attention_bias": false)")) == plain);
  CHECK(parameter_count(read("seed_oss", llama + R"(, "attention_out_bias": true)")) ==
        plain + qkv + 2 * 8);
  // LayerNorms, and biases in all linears unless the file says no.
  const ModelSpec starcoder = read("starcoder2", llama);
  CHECK((starcoder.norm == Norm::layer && starcoder.mlp.bias && !starcoder.mlp.gated));
  CHECK(starcoder.attention.output_bias);
  CHECK_FALSE(read("starcoder2", llama + R"(, "use_bias": false)").mlp.bias);
}

TEST_CASE("OLMo 2 and EXAONE 4 norm what a half gives, and queries and keys together or by head") {
  const std::int64_t plain = parameter_count(read("llama", llama));
  const std::string window = R"(, "sliding_window": 5)";
  for (const char* type : {"olmo2", "olmo3", "exaone4"}) {
    CAPTURE(type);
    const ModelSpec model = read(type, llama + window);
    CHECK(model.norms_after);
    const bool joint = model.attention.joint_qk_norm;
    CHECK(joint == std::string_view(type).starts_with("olmo"));
    CHECK(parameter_count(model) == plain + 2 * (joint ? 8 + 4 : 4 + 4));
  }
  CHECK_FALSE(read("llama", llama).norms_after);
  CHECK_FALSE(read("qwen3", llama).attention.joint_qk_norm);
  // One of four layers sees all keys.
  const std::string eight =
      R"("num_hidden_layers": 8, )" +
      std::string(llama).replace(llama.find(R"("num_hidden_layers": 2,)"), 23, "");
  CHECK(read("olmo3", eight + window).attention.windowed_layers == 6);
  CHECK(read("exaone4", eight + window).attention.windowed_layers == 6);
}

TEST_CASE(
    "an OLMoE that clips queries, keys and values is refused, and one that does not is read") {
  const std::string sizes = llama + R"(, "num_experts_per_tok": 2, "num_experts": 4, "clip_qkv": )";
  CHECK(says(error_text([&] { read("olmoe", sizes + "8.0"); }), "clip_qkv"));
  CHECK(read("olmoe", sizes + "null").attention.joint_qk_norm);
}

TEST_CASE("norms of Llama 4's turned queries have no weights, and are there unless it says no") {
  const std::string sizes = llama + R"(, "num_experts_per_tok": 1, "num_local_experts": 4,
      "interleave_moe_layer_step": 1, "intermediate_size_mlp": 20)";
  CHECK(read("llama4_text", sizes).attention.plain_qk_norm);
  CHECK_FALSE(read("llama4_text", sizes + R"(, "use_qk_norm": false)").attention.plain_qk_norm);
  CHECK_FALSE(read("llama", llama).attention.plain_qk_norm);
}

TEST_CASE("latent attention") {
  const std::string sizes = llama + R"(, "num_experts_per_tok": 2, "n_routed_experts": 4,
      "moe_intermediate_size": 6, "n_shared_experts": 2, "first_k_dense_replace": 1,
      "kv_lora_rank": 6, "qk_nope_head_dim": 4, "qk_rope_head_dim": 2, "v_head_dim": 3)";
  // kv down (6+2)x8 with norm 6, kv up 2x(4+3)x6, o 8x6; q straight 12x8
  constexpr std::int64_t kv_and_output = 64 + 6 + 84 + 48;
  constexpr std::int64_t experts = 32 + 6 * 144;
  CHECK(parameter_count(read("deepseek_v2", sizes + ", \"q_lora_rank\": null")) ==
        untied_ends + 2 * (16 + kv_and_output + 96) + 288 + experts);
  // q down 5x8 with norm 5, up 12x5; corrections for 4 experts
  for (const char* type : {"deepseek_v3", "kimi_k2"}) {
    CAPTURE(type);
    const ModelSpec model =
        read(type, sizes + ", \"q_lora_rank\": 5, \"num_nextn_predict_layers\": 1");
    CHECK(parameter_count(model) ==
          untied_ends + 2 * (16 + kv_and_output + 40 + 5 + 60) + 288 + experts + 4);
    CHECK(model.mtp_layers == 1);
  }
  CHECK(says(error_text([&] { read("deepseek_v3", sizes); }), "no 'q_lora_rank'"));
}
