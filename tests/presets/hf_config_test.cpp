#include "presets/hf_config.hpp"

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "cost_model/rank/weights.hpp"
#include "presets/preset_file.hpp"
#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"

using namespace zeroplan;
using nlohmann::json;

namespace {

json llama() {
  return {{"model_type", "llama"},      {"hidden_size", 64},
          {"intermediate_size", 160},   {"num_hidden_layers", 2},
          {"num_attention_heads", 4},   {"num_key_value_heads", 2},
          {"vocab_size", 256},          {"max_position_embeddings", 128},
          {"tie_word_embeddings", true}};
}

ModelSpec read(const json& config, std::vector<std::string>* assumptions = nullptr) {
  return read_hf_config(config.dump(), "c.json", assumptions);
}

/// The message when `key` of the Llama above is `value`; null removes the key.
std::string error_with(const std::string& key, const json& value) {
  json config = llama();
  config[key] = value;
  return error_text([&] { read(config); });
}

}  // namespace

TEST_CASE("a config.json becomes a model") {
  const ModelSpec model = read(llama());
  CHECK(model.family == "llama");
  CHECK(model.layers == 2);
  CHECK(model.attention.head_dim == 16);  // 64 / 4
  CHECK(model.attention.kv_heads == 2);
  CHECK(model.mlp.gated);
  CHECK(model.tied_embeddings);
  // 256x64 embedding, final norm 64; a layer: 2 norms, q and o 64x64, k and v 32x64, MLP 3x160x64
  CHECK(parameter_count(model) ==
        256 * 64 + 64 + 2 * (2 * 64 + 2 * 64 * 64 + 2 * 32 * 64 + 3 * 160 * 64));
}

TEST_CASE("biases of attention and MLP follow their keys") {
  json config = llama();
  config["attention_bias"] = true;
  config["mlp_bias"] = true;
  const ModelSpec model = read(config);
  CHECK(model.attention.qkv_bias);
  CHECK(model.attention.output_bias);
  CHECK(model.mlp.bias);
}

TEST_CASE("what a file leaves open or is not modelled is said") {
  json config = llama();
  config.erase("tie_word_embeddings");
  config["quantization_config"] = {{"quant_method", "fp8"}};
  config["sliding_window"] = 4096;
  std::vector<std::string> assumptions;
  CHECK_FALSE(read(config, &assumptions).tied_embeddings);
  REQUIRE(assumptions.size() == 3);
  CHECK(assumptions[0] == "tie_word_embeddings is not given: not tied, as llama is by default");
  CHECK(says(assumptions[1], "quantization is ignored"));
  CHECK(says(assumptions[2], "2 of 2 layers see the last 4096 keys alone"));
  assumptions.clear();
  config = llama();
  config["sliding_window"] = 4096;
  config["use_sliding_window"] = false;
  read(config, &assumptions);
  CHECK(assumptions.empty());
}

TEST_CASE("a window is of the layers that the file or its family gives it to") {
  const auto windowed = [](const json& more) {
    json config = llama();
    config["num_hidden_layers"] = 14;
    config["sliding_window"] = 64;
    config.update(more);
    const AttentionSpec a = read(config).attention;
    return std::pair(a.sliding_window, a.windowed_layers);
  };
  using Pair = std::pair<std::int64_t, std::int64_t>;
  CHECK(windowed(json::object()) == Pair{64, 14});
  CHECK(windowed({{"model_type", "gemma2"}, {"head_dim", 16}}) == Pair{64, 7});
  CHECK(windowed({{"model_type", "gemma3_text"}, {"head_dim", 16}}) == Pair{64, 12});
  CHECK(windowed({{"sliding_window_pattern", 4}}) == Pair{64, 11});
  CHECK(windowed({{"max_window_layers", 10}}) == Pair{64, 4});
  CHECK(windowed({{"max_window_layers", 28}}) == Pair{0, 0});
  CHECK(windowed({{"layer_types", {"sliding_attention", "full_attention"}}}) == Pair{64, 1});
  CHECK(windowed({{"sliding_window", nullptr}}) == Pair{0, 0});
  CHECK(windowed({{"sliding_window", 0}}) == Pair{0, 0});
}

TEST_CASE("of a multimodal file the text model is read") {
  json text = llama();
  text["model_type"] = "gemma3_text";
  text["head_dim"] = 16;
  text.erase("tie_word_embeddings");
  json config{{"model_type", "gemma3"}, {"text_config", text}, {"tie_word_embeddings", false}};
  config["vision_config"] = {{"hidden_size", 1152}};
  std::vector<std::string> assumptions;
  const ModelSpec model = read(config, &assumptions);
  CHECK(model.family == "gemma3_text");
  CHECK_FALSE(model.tied_embeddings);  // the wrapper says it for both
  REQUIRE(assumptions.size() == 1);
  CHECK(says(assumptions[0], "vision tower"));
  config["model_type"] = "some_new_vlm";  // any wrapper around a text model that is known
  CHECK(read(config).family == "gemma3_text");
  config["model_type"] = "mistral3";
  config["text_config"].erase("model_type");
  CHECK(read(config).family == "mistral");
  config["text_config"]["tie_word_embeddings"] = true;
  CHECK_FALSE(read(config).tied_embeddings);
}

TEST_CASE("Qwen's text models with eyes are those without, beside the vision tower or apart") {
  json flat = llama();
  flat.update({{"model_type", "qwen2_5_vl"}, {"vision_config", {{"hidden_size", 1280}}}});
  std::vector<std::string> notes;
  const ModelSpec model = read(flat, &notes);
  CHECK((model.family == "qwen2" && model.attention.qkv_bias));
  REQUIRE(notes.size() == 1);
  CHECK(says(notes.front(), "vision tower"));
  json text = llama();
  text.update({{"head_dim", 16}, {"model_type", "qwen3_vl_text"}});
  const json apart{{"model_type", "qwen3_vl"}, {"text_config", text}};
  CHECK((read(apart).family == "qwen3" && read(apart).attention.qk_norm));
  CHECK(read(text) == read(apart));
  CHECK(says(error_text([] { read({{"model_type", "qwen3_vl"}}); }), "'text_config' is missing"));
}

TEST_CASE("a bad text_config is refused") {
  const auto text = [](const json& config) { return error_text([&] { read(config); }); };
  CHECK(text({{"model_type", "llama4"}}) == "c.json: 'text_config' is missing");
  CHECK(says(text({{"model_type", "gemma3"}, {"text_config", 3}}),
             "'text_config' must be an object, found 3"));
  json inner = llama();
  inner["model_type"] = "lama";
  CHECK(says(text({{"model_type", "llama4"}, {"text_config", inner}}),
             "c.json: text_config: model_type 'lama' is not supported, nearest is 'llama'"));
  inner["model_type"] = "llama";
  inner.erase("vocab_size");
  CHECK(says(text({{"model_type", "vlm"}, {"text_config", inner}}), "text_config: no size 'vocab"));
}

TEST_CASE("a missing size is refused, never filled in") {
  CHECK(error_with("hidden_size", nullptr) ==
        "c.json: no size 'hidden_size'; one of hidden_size, n_embd, d_model, n_embed is needed");
  CHECK(says(error_with("num_hidden_layers", nullptr), "n_layer"));
  CHECK(says(error_with("num_attention_heads", nullptr), "n_head"));
  CHECK(says(error_with("intermediate_size", nullptr), "ffn_dim"));
  CHECK(error_with("vocab_size", nullptr) == "c.json: no size 'vocab_size'");
}

TEST_CASE("a size that is no size is refused") {
  CHECK(error_with("num_hidden_layers", 3.7) ==
        "c.json: 'num_hidden_layers' must be an integer from 1 to 4000, found 3.7");
  CHECK(says(error_with("num_hidden_layers", 0), "found 0"));
  CHECK(says(error_with("hidden_size", -64), "from 1 to 2147483648, found -64"));
  CHECK(says(error_with("hidden_size", "64"), "found \"64\""));
  CHECK(says(error_with("hidden_size", 1e30), "found 1e+30"));
  CHECK(says(error_with("tie_word_embeddings", "yes"), "must be true or false, found \"yes\""));
  CHECK(says(error_with("model_type", 3), "must be a string"));
}

TEST_CASE("sizes that contradict each other are refused") {
  CHECK(error_with("num_attention_heads", 6) ==
        "c.json: hidden size 64 is not a multiple of 6 attention heads and there is no 'head_dim'; "
        "4 heads divide it");
  CHECK(says(error_with("num_key_value_heads", 3), "3 key-value heads do not divide 4"));
  json config = llama();
  config["num_attention_heads"] = 6;  // legal with a width of its own
  config["head_dim"] = 128;
  CHECK(query_width(read(config).attention) == 6 * 128);
}

TEST_CASE("a model beyond all training is refused before any product overflows") {
  CHECK(error_with("intermediate_size", 2'147'483'648).empty());  // 8e11: large, but countable
  json config = llama();
  config["hidden_size"] = 2'147'483'648;
  config["intermediate_size"] = 2'147'483'648;
  config["vocab_size"] = 2'147'483'648;
  CHECK(says(error_text([&] { read(config); }), "fewer than 1e+15 are allowed"));
  json moe = json::parse(preset_json("models", "deepseek-v3")).at("config");
  for (const char* key : {"kv_lora_rank", "q_lora_rank", "v_head_dim", "qk_nope_head_dim"}) {
    moe[key] = 2'147'483'648;
  }
  CHECK(says(error_text([&] { read(moe); }), "fewer than 1e+15 are allowed"));
}

TEST_CASE("an unknown model_type is refused with what it would take") {
  const std::string message = error_with("model_type", "lama");
  CHECK(says(message, "'lama' is not supported, nearest is 'llama'"));
  CHECK(says(message, "attention, MLP and norm layout"));
  CHECK(says(error_with("model_type", nullptr), "'model_type' is missing; supported are afmoe, "));
  CHECK(
      says(error_text([] { read_hf_config("[1]", "c.json", nullptr); }), "expected a JSON object"));
}

TEST_CASE("a decoder with llama's keys is read as llama whatever its name, openly") {
  json config = llama();
  config.update({{"rms_norm_eps", 1e-5}, {"rope_theta", 10000.0}, {"hidden_act", "silu"}});
  const ModelSpec known = read(config);
  for (const json& name : {json("cwm"), json("mycorp_llm"), json(nullptr)}) {
    config["model_type"] = name;
    std::vector<std::string> notes;
    const ModelSpec model = read(config, &notes);
    CHECK(model == known);
    REQUIRE(notes.size() == 1);
    CHECK(says(notes.front(), "read as llama, whose keys"));
  }
  // What llama does not have makes it another model.
  struct Other {
    const char* key;
    json value;
    const char* words;
  };
  const Other others[] = {
      {"num_experts", 8, "'mycorp_llm' has experts"},
      {"kv_lora_rank", 512, "has latent attention: --as deepseek_v3"},
      {"is_encoder_decoder", true, "is not a decoder alone"},
      {"mamba_d_state", 16, "has layers of a state space"},
      {"mamba_n_heads", 48, "('mamba_n_heads')"},
      {"linear_attn_config", {{"kda_layers", {1, 2}}}, "linear attention"},
      {"full_attention_interval", 4, "linear attention"},
      {"conv_L_cache", 3, "a convolution"},
      {"layer_types", {"linear_attention", "full_attention"}, "('layer_types')"},
      {"first_k_dense_replace", 3, "('first_k_dense_replace')"},
      {"index_topk", 2048, "chooses the keys that a query sees"},
      {"hidden_size_per_layer_input", 256, "embeddings of its own in each layer"},
      {"num_kv_shared_layers", 15, "share keys and values"}};
  for (const Other& other : others) {
    json file = config;
    file["model_type"] = "mycorp_llm";
    file[other.key] = other.value;
    CAPTURE(other.key);
    CHECK(says(error_text([&] { read(file); }), other.words));
  }
  json indexed = config;
  indexed.update({{"model_type", "mycorp_llm"},
                  {"layer_types", {"indexed_attention", "full_attention"}},
                  {"index_topk", 2048}});
  CHECK(says(error_text([&] { read(indexed); }), "chooses the keys that a query sees"));
  // What is there and says no is none of that.
  json plain = config;
  plain.update({{"model_type", "mycorp_llm"},
                {"num_experts", 0},
                {"is_encoder_decoder", false},
                {"layer_types", {"sliding_attention", "full_attention"}}});
  CHECK(read(plain) == known);
  for (const char* key : {"rms_norm_eps", "rope_theta", "num_key_value_heads"}) {
    json persimmon = config;
    persimmon["model_type"] = "persimmon";
    persimmon.erase(key);
    CHECK(says(error_text([&] { read(persimmon); }), "'persimmon' is not supported; supporting"));
  }
  json gemma = config;
  gemma["model_type"] = "gemma9";
  gemma.erase("hidden_act");
  gemma["hidden_activation"] = "gelu_pytorch_tanh";
  CHECK(says(error_text([&] { read(gemma); }), "'gemma9' is not supported"));
  json bert = config;
  bert["model_type"] = "bert";
  CHECK(says(error_text([&] { read(bert); }), "is not a decoder alone"));
  // A family without experts has none, whatever the file says.
  json experts = config;
  experts.update({{"model_type", "llama"}, {"num_experts", 8}});
  CHECK(says(error_text([&] { read(experts); }), "llama has no experts"));
}

TEST_CASE("numbers that Python writes and JSON has not are nothing, but in texts what they are") {
  json config = llama();
  const ModelSpec plain = read(config);
  config["note"] = "\\\" Infinity";
  std::string text = config.dump();
  text.insert(text.size() - 1, R"(, "limits": [0.0, Infinity, -Infinity], "noise": NaN)");
  CHECK(read_hf_config(text, "c.json", nullptr) == plain);
  text.insert(text.size() - 1, R"(, "model_type": "Infinity")");
  CHECK(says(error_text([&] { read_hf_config(text, "c.json", nullptr); }), "model_type"));
  CHECK(says(error_text([&] { read_hf_config(R"({"hidden_size": Infinite})", "c.json", nullptr); }),
             "not JSON"));
}

TEST_CASE("Meta's params.json and nanoGPT's configuration are read as what they are") {
  const json meta = {{"dim", 4096},      {"n_layers", 32},         {"n_heads", 32},
                     {"n_kv_heads", 8},  {"vocab_size", 128256},   {"multiple_of", 1024},
                     {"norm_eps", 1e-5}, {"rope_theta", 500000.0}, {"ffn_dim_multiplier", 1.3}};
  std::vector<std::string> notes;
  CHECK(parameter_count(read(meta, &notes)) == 8'030'261'248);  // Llama 3 8B, as published
  CHECK(says(notes.front(), "params.json is read as llama"));
  json nano = {{"block_size", 1024}, {"vocab_size", 50257}, {"n_layer", 12},
               {"n_head", 12},       {"n_embd", 768},       {"bias", true}};
  CHECK(parameter_count(read(nano)) == 124'439'808);  // GPT-2
  nano["bias"] = false;
  notes.clear();
  read(nano, &notes);
  CHECK(says(notes.at(1), "biases that it leaves out are counted"));
  json unknown_words = meta;
  unknown_words["vocab_size"] = -1;  // as Llama 2's says
  CHECK(says(error_text([&] { read(unknown_words); }), "vocab_size"));
}

TEST_CASE("a file is read as the model_type that is asked for") {
  json config = llama();
  config["model_type"] = "persimmon";
  const auto as = [&](std::string_view type, std::vector<std::string>* notes = nullptr) {
    return read_hf_config(config.dump(), "c.json", notes, type);
  };
  std::vector<std::string> notes;
  CHECK(as("llama", &notes) == read(llama()));
  CHECK(says(notes.front(), "model_type 'persimmon' is read as llama (--as)"));
  CHECK(as("qwen2").attention.qkv_bias);
  CHECK(says(error_text([&] { as("lama"); }), "--as 'lama': must be one of "));
}

TEST_CASE("a damaged file is read or refused, never more") {
  const std::string config =
      json::parse(preset_json("models", "deepseek-v3")).at("config").dump(1) + "\n";
  std::mt19937 random(20240607);  // NOLINT: the same damage in each run
  int refused = 0;
  const auto survive = [&](const std::string& text) {
    if (!error_text([&] { parameter_count(read_hf_config(text, "c.json", nullptr)); }).empty()) {
      ++refused;
    }
  };
  for (int i = 0; i < 200; ++i) survive(config.substr(0, random() % config.size()));
  for (int i = 0; i < 400; ++i) {
    std::string text = config;
    for (int flips = 0; flips <= i % 4; ++flips) {
      text[random() % text.size()] = static_cast<char>(random() % 256);
    }
    survive(text);
  }
  for (int i = 0; i < 200; ++i) {  // digits only: still JSON, with absurd sizes
    std::string text = config;
    for (char& c : text) {
      if (c >= '0' && c <= '9' && random() % 8 == 0) c = static_cast<char>('0' + random() % 10);
    }
    survive(text);
  }
  CHECK(refused > 300);
  CHECK(refused < 800);
}
