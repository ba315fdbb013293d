// Patterns of Megatron-LM's hybrid models: what they say of layers, pipelines and further tokens.
#include "presets/megatron_hybrid.hpp"

#include <nlohmann/json.hpp>

#include "presets/hf_config.hpp"
#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"

using namespace zeroplan;
using nlohmann::json;

namespace {

const json whole = {{"model_type", "megatron_arguments"},
                    {"hidden_size", 8},
                    {"num_attention_heads", 2},
                    {"kv_channels", 4},
                    {"vocab_size", 16},
                    {"ffn_hidden_size", 12},
                    {"squared_relu", true},
                    {"disable_bias_linear", true},
                    {"untie_embeddings_and_output_weights", true},
                    {"position_embedding_type", "none"},
                    {"normalization", "RMSNorm"},
                    {"num_experts", 4},
                    {"moe_router_topk", 2},
                    {"moe_ffn_hidden_size", 6},
                    {"moe_latent_size", 4},
                    {"moe_router_enable_expert_bias", true},
                    {"mamba_num_heads", 4},
                    {"mamba_head_dim", 5},
                    {"mamba_num_groups", 2},
                    {"mamba_state_dim", 3},
                    {"hybrid_layer_pattern", "M*|-E"}};

ModelSpec read(const json& file) {
  return read_hf_config(file.dump(), "train.sh", nullptr);
}

ModelSpec with(std::string_view key, const json& value) {
  json file = whole;
  file[std::string(key)] = value;
  return read(file);
}

std::string error_of(std::string_view key, const json& value) {
  return error_text([&] { with(key, value); });
}

}  // namespace

TEST_CASE("a pattern says each layer, chunk and module") {
  using Kinds = std::vector<LayerKind>;
  const ModelSpec model = read(whole);
  CHECK(model.layers == 4);
  CHECK(model.layer_kinds ==
        Kinds{LayerKind::linear, LayerKind::attention, LayerKind::mlp, LayerKind::experts});
  CHECK(pattern_of(model.layer_kinds) == "M*-E");
  CHECK(is_of_halves(model));
  CHECK_FALSE(turns_heads(model));
  CHECK(model.moe->latent_size == 4);
  CHECK(model.state_space ==
        StateSpaceSpec{
            .heads = 4, .head_dim = 5, .groups = 2, .state = 3, .convolution = 4, .chunk = 128});
  CHECK(layout_of_pattern("M*|-E|").layers == std::vector<std::int64_t>{2, 2, 0});
  CHECK(layout_of_pattern("M*-E/*E/*E").layers == std::vector<std::int64_t>{4});
  CHECK(layers_of_pattern("M*|-E/*E") == 4);

  const ModelSpec predicts = with("hybrid_layer_pattern", "M*-E/*E/*E");
  CHECK(predicts.layers == 4);
  CHECK(predicts.mtp_layers == 2);
  CHECK(kinds_of_mtp_module(predicts) == LayerKinds{LayerKind::attention, LayerKind::experts});
}

TEST_CASE("what a pattern has none of is no part of the model") {
  const ModelSpec dense = with("hybrid_layer_pattern", "M-*-");
  CHECK_FALSE(dense.moe);
  CHECK(dense.mlp.intermediate_size == 12);
  CHECK_FALSE(with("hybrid_layer_pattern", "*-*E").state_space);
  CHECK(with("hybrid_layer_pattern", "M*EE").mlp.intermediate_size == 0);
  json usual = whole;
  for (const char* key : {"mamba_num_heads", "mamba_num_groups", "mamba_state_dim"}) {
    usual.erase(key);
  }
  usual["mamba_head_dim"] = 2;
  const ModelSpec model = read(usual);
  CHECK(model.state_space->heads == 8);  // twice the hidden size
  CHECK(model.state_space->groups == 8);
  CHECK(model.state_space->state == 128);
}

TEST_CASE("a pattern that says no model is refused in a line") {
  CHECK_THAT(error_of("hybrid_layer_pattern", "MGX"),
             ContainsSubstring("'G' is not described; M, *, - and E are"));
  CHECK_THAT(error_of("hybrid_layer_pattern", "M*/-E"),
             ContainsSubstring("'-E' has layers that no other part has"));
  CHECK_THAT(error_of("hybrid_layer_pattern", "M*E/*E/*"),
             ContainsSubstring("the modules '*E/*' differ"));
  CHECK_THAT(error_of("hybrid_layer_pattern", "M*E/*/*E"), ContainsSubstring("differ"));
  CHECK_THAT(error_of("mamba_num_groups", 3), ContainsSubstring("3 do not divide 4 heads"));
  json file = whole;
  file.erase("num_experts");
  CHECK_THAT(error_text([&] { read(file); }), ContainsSubstring("no 'num-experts'"));
  file = whole;
  file.erase("mamba_num_heads");
  CHECK_THAT(error_text([&] { read(file); }), ContainsSubstring("give mamba-num-heads"));
  CHECK_FALSE(error_of("hybrid_layer_pattern", "").empty());
}
