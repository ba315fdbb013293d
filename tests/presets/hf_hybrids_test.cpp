// Files of models whose layers are state spaces: what they say of each layer, counted by hand.
#include "presets/hf_hybrids.hpp"

#include <nlohmann/json.hpp>

#include "cost_model/rank/weights.hpp"
#include "presets/hf_config.hpp"
#include "tests/catch.hpp"
#include "tests/presets/error_text.hpp"

using namespace zeroplan;
using nlohmann::json;

namespace {

ModelSpec read(const json& file) {
  return read_hf_config(file.dump(), "c.json", nullptr);
}

std::string error_of(json file, const char* key, const json& value) {
  file[key] = value;
  return error_text([&] { read(file); });
}

// Queries and output 8 x 8, keys and values 4 x 8; no bias.
constexpr std::int64_t attention = 2 * 64 + 2 * 32;
constexpr std::int64_t ends = 2 * 16 * 8 + 8;

const json bamba = {{"model_type", "bamba"},
                    {"hidden_size", 8},
                    {"num_hidden_layers", 2},
                    {"num_attention_heads", 2},
                    {"num_key_value_heads", 1},
                    {"vocab_size", 16},
                    {"intermediate_size", 12},
                    {"tie_word_embeddings", false},
                    {"attn_layer_indices", {1}},
                    {"mamba_n_heads", 4},
                    {"mamba_d_head", "auto"},
                    {"mamba_n_groups", 2},
                    {"mamba_d_state", 3},
                    {"mamba_d_conv", 4},
                    {"mamba_expand", 2},
                    {"mamba_chunk_size", 8},
                    {"max_position_embeddings", 64}};

const json nemotron = {{"model_type", "nemotron_h"},
                       {"hidden_size", 8},
                       {"num_hidden_layers", 4},
                       {"num_attention_heads", 2},
                       {"num_key_value_heads", 1},
                       {"head_dim", 4},
                       {"vocab_size", 16},
                       {"intermediate_size", 12},
                       {"tie_word_embeddings", false},
                       {"hybrid_override_pattern", "M*-E"},
                       {"mamba_num_heads", 4},
                       {"mamba_head_dim", 5},
                       {"n_groups", 2},
                       {"ssm_state_size", 3},
                       {"conv_kernel", 4},
                       {"chunk_size", 8},
                       {"n_routed_experts", 4},
                       {"num_experts_per_tok", 2},
                       {"moe_intermediate_size", 6},
                       {"moe_shared_expert_intermediate_size", 10},
                       {"max_position_embeddings", 64}};

}  // namespace

// 4 heads of 4: 16 features, 28 channels, 48 values of the first projection.
TEST_CASE("Bamba's layers are state spaces but for those that the file names") {
  constexpr std::int64_t mixer = 3 * 4 + 28 * 4 + 28 + 48 * 8 + 16 + 8 * 16;
  constexpr std::int64_t others = 2 * 8 + 3 * 96;
  const ModelSpec model = read(bamba);
  CHECK(model.layer_kinds == std::vector{LayerKind::linear_dense, LayerKind::dense});
  CHECK(parameter_count(model) == ends + mixer + attention + 2 * others);
  CHECK(model.state_space->head_dim == 4);
  CHECK(model.state_space->chunk == 8);
  CHECK(turns_heads(model));
  CHECK(layer_name(model, LayerKind::linear_dense) == "state-space layer");
  CHECK(layer_name(model, LayerKind::linear_moe) == "state-space MoE layer");
  CHECK(layer_name(model, LayerKind::dense) == "dense layer");
  json file = bamba;
  file.erase("attn_layer_indices");
  CHECK(parameter_count(read(file)) == ends + 2 * (mixer + others));
  file["mamba_conv_bias"] = false;
  file["mamba_proj_bias"] = true;
  CHECK(parameter_count(read(file)) == ends + 2 * (mixer - 28 + 48 + 8 + others));
  file["layer_types"] = {"full_attention", "full_attention"};
  CHECK_FALSE(read(file).state_space);
  // A shorter model has no layer of that number.
  file = bamba;
  file["attn_layer_indices"] = {1, 9};
  CHECK(read(file) == model);
  CHECK(
      says(error_of(bamba, "mamba_d_head", 5), "4 heads of 5 are not mamba_expand x hidden_size"));
  CHECK(says(error_of(bamba, "mamba_n_groups", 3), "3 groups of a state space do not divide 4"));
  CHECK(says(error_of(bamba, "attn_layer_indices", {-1}), "attn_layer_indices"));
}

// 4 heads of 5: 20 features, 32 channels, 56 values of the first projection; experts of 6 without a
// gate, one of 10 that all tokens go to, and a router with corrections.
TEST_CASE("Nemotron-H's layers are one half each, as its pattern says") {
  constexpr std::int64_t mixer = 3 * 4 + 32 * 4 + 32 + 56 * 8 + 20 + 8 * 20;
  constexpr std::int64_t experts = 4 * 8 + 4 + 4 * 2 * 48 + 2 * 80;
  const ModelSpec model = read(nemotron);
  CHECK(model.layer_kinds ==
        std::vector{LayerKind::linear, LayerKind::attention, LayerKind::mlp, LayerKind::experts});
  CHECK(parameter_count(model) == ends + 4 * 8 + mixer + attention + 2 * 96 + experts);
  CHECK(active_parameter_count(model) == parameter_count(model) - 2 * 2 * 48);
  CHECK_FALSE(turns_heads(model));
  CHECK(model.mlp.squared_relu);
  CHECK_FALSE(model.moe->gated);
  CHECK(layer_name(model, LayerKind::linear) == "state-space layer");
  CHECK(layer_name(model, LayerKind::mlp) == "MLP layer");
  for (const char* key : {"layers_block_type", "layer_types"}) {
    json file = nemotron;
    file.erase("hybrid_override_pattern");
    file[key] = {"mamba", "full_attention", "mlp", "moe"};
    CHECK(read(file).layer_kinds == model.layer_kinds);
    file[key] = {"mamba", "attention", "mlp", "lstm"};
    CHECK(says(error_text([&] { read(file); }), "has 'lstm', not mamba, attention, mlp or moe"));
  }
  json uncounted = nemotron;
  uncounted.erase("num_hidden_layers");
  CHECK(read(uncounted) == model);
  uncounted.erase("hybrid_override_pattern");
  CHECK(says(error_text([&] { read(uncounted); }), "no 'hybrid_override_pattern' says"));
  CHECK(says(error_of(nemotron, "hybrid_override_pattern", "M*-X"), "has 'X', not M, *, - or E"));
  CHECK(says(error_of(nemotron, "hybrid_override_pattern", "M*-"), "3 layers are listed"));
  json latents = nemotron;
  latents["moe_latent_size"] = 4;
  CHECK(read(latents).moe->latent_size == 4);
  CHECK(parameter_count(read(latents)) == parameter_count(model) - 4 * 2 * 24 + 2 * 32);
  CHECK(says(error_of(nemotron, "n_groups", 3), "do not divide 4 heads"));
  json dense = nemotron;
  dense["hybrid_override_pattern"] = "MM--";
  CHECK_FALSE(read(dense).moe);
  CHECK(parameter_count(read(dense)) == ends + 4 * 8 + 2 * mixer + 2 * 2 * 96);
}
