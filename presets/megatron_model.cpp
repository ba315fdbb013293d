// Which model do Megatron-LM's arguments build? Front door: import_megatron_model.
// Source: Megatron-LM @d98e8a64dd training/arguments.py validate_args and
// core/transformer/transformer_config.py.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "presets/hf_families.hpp"
#include "presets/hf_import.hpp"
#include "presets/layer_pattern.hpp"
#include "presets/megatron_hybrid.hpp"

namespace zeroplan {
namespace {

// Which layers an argument names: by a pattern that says each of them, or by a number (1 where
// nothing is said), of which `is_named` tells for each layer.
std::vector<bool> read_frequency(const JsonObject& c,
                                 std::string_view key,
                                 std::int64_t layers,
                                 bool (*is_named)(std::int64_t layer, std::int64_t number)) {
  const std::string text = c.find_string(key).value_or("1");
  std::int64_t number = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number);
  if (error == std::errc{} && end == last && number > 0) {
    std::vector<bool> list;
    for (std::int64_t i = 0; i < layers; ++i) list.push_back(is_named(i, number));
    return list;
  }
  std::vector<bool> list = read_layer_pattern(text, any_layers.most);
  if (static_cast<std::int64_t>(list.size()) != layers) {
    std::string argument(key);
    std::ranges::replace(argument, '_', '-');
    c.fail(fmt::format("{} '{}': must say each of the {} layers", argument, text, layers));
  }
  return list;
}

// Every N-th layer from the first.
void place_experts(const JsonObject& c, ModelSpec& model) {
  const std::vector<bool> experts =
      read_frequency(c, "moe_layer_freq", model.layers,
                     [](std::int64_t layer, std::int64_t n) { return layer % n == 0; });
  if (std::ranges::find(experts, false) == experts.end()) return;
  for (const bool has : experts) {
    model.layer_kinds.push_back(has ? LayerKind::moe : LayerKind::dense);
  }
}

// All but every N-th layer, which compares all keys.
void place_linear_attention(const JsonObject& c, ModelSpec& model) {
  const auto variant = c.find_string("experimental_attention_variant");
  if (!variant) return;
  if (*variant != "gated_delta_net" && *variant != "gdn") {
    c.fail(fmt::format("experimental-attention-variant '{}' is not described; gated_delta_net is",
                       *variant));
  }
  if (!c.has("linear_attention_freq")) c.fail("no 'linear-attention-freq'");
  const std::vector<bool> linear =
      read_frequency(c, "linear_attention_freq", model.layers,
                     [](std::int64_t layer, std::int64_t n) { return (layer + 1) % n != 0; });
  constexpr std::int64_t usual_keys = 16, usual_values = 32, usual_width = 128, usual_filter = 4;
  LinearAttentionSpec spec;
  spec.key_heads = c.find_integer("linear_num_key_heads", any_heads).value_or(usual_keys);
  spec.value_heads = c.find_integer("linear_num_value_heads", any_heads).value_or(usual_values);
  spec.key_head_dim = c.find_integer("linear_key_head_dim", any_size).value_or(usual_width);
  spec.value_head_dim = c.find_integer("linear_value_head_dim", any_size).value_or(usual_width);
  spec.convolution = c.find_integer("linear_conv_kernel_dim", any_size).value_or(usual_filter);
  if (spec.value_heads % spec.key_heads != 0) {
    c.fail(fmt::format("linear-num-key-heads {} do not divide {} value heads", spec.key_heads,
                       spec.value_heads));
  }
  if (std::ranges::find(linear, true) == linear.end()) return;
  model.linear_attention = spec;
  model.layer_kinds = kinds_with_linear_attention(model, linear);
}

// "127,0": the keys before a query, and none after it. One layer in so many sees all.
void read_window(const JsonObject& c, ModelSpec& model) {
  const auto text = c.find_string("window_size");
  if (!text) return;
  std::int64_t before = 0;
  const char* end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, before);
  if (error != std::errc{} || before < 0 || before >= any_size.most ||
      std::string_view(rest, end) != ",0") {
    c.fail(fmt::format("window-size '{}': must be the keys before a query and 0, as 127,0", *text));
  }
  const std::int64_t every = c.find_integer("window_attn_skip_freq", any_layers).value_or(0);
  model.attention.sliding_window = before + 1;
  model.attention.windowed_layers = every == 0 ? model.layers : model.layers - model.layers / every;
}

void read_attention(const JsonObject& c, ModelSpec& model) {
  AttentionSpec& a = model.attention;
  a.heads = c.integer("num_attention_heads", any_heads);
  a.kv_heads = a.heads;
  const bool norms = c.find_boolean("qk_layernorm").value_or(false);
  if (c.find_boolean("multi_latent_attention").value_or(false)) {
    MlaSpec mla;
    mla.q_lora_rank = c.find_integer("q_lora_rank", any_size).value_or(0);
    mla.kv_lora_rank = c.find_integer("kv_lora_rank", any_size).value_or(32);
    mla.qk_nope_head_dim = c.find_integer("qk_head_dim", any_size).value_or(128);
    mla.qk_rope_head_dim = c.find_integer("qk_pos_emb_head_dim", any_size).value_or(64);
    mla.v_head_dim = c.find_integer("v_head_dim", any_size).value_or(128);
    a.mla = mla;
  } else {
    if (c.find_boolean("group_query_attention").value_or(false)) {
      a.kv_heads = c.find_integer("num_query_groups", any_heads).value_or(1);
    }
    const auto width = c.find_integer("kv_channels", any_size);
    if (!width && model.hidden_size % a.heads != 0) {
      c.fail(fmt::format("hidden-size {} is not a multiple of {} heads: give kv-channels",
                         model.hidden_size, a.heads));
    }
    a.head_dim = width.value_or(model.hidden_size / a.heads);
    a.qk_norm = norms;
    a.yarn = c.find_string("position_embedding_type") == "yarn";
  }
  if (a.heads % a.kv_heads != 0) {
    c.fail(fmt::format("num-query-groups {} do not divide {} heads", a.kv_heads, a.heads));
  }
  a.sinks = c.find_string("softmax_type") == "learnable";
  a.output_gate = c.find_boolean("attention_output_gate").value_or(false);
  read_window(c, model);
  const bool plain = c.find_boolean("disable_bias_linear").value_or(false);
  a.output_bias = !plain;
  a.qkv_bias = !plain || c.find_boolean("add_qkv_bias").value_or(false);
  model.mlp.bias = !plain;
}

void read_mlp(const JsonObject& c, ModelSpec& model) {
  MlpSpec& mlp = model.mlp;
  mlp.gated =
      c.find_boolean("swiglu").value_or(false) || c.find_boolean("quick_geglu").value_or(false);
  mlp.squared_relu = c.find_boolean("squared_relu").value_or(false);
  if (mlp.gated && mlp.squared_relu) c.fail("squared-relu has no gate: swiglu or quick-geglu");
  // As the arguments are completed where they leave it open.
  const std::int64_t usual =
      mlp.gated ? 8 * model.hidden_size / 3 / 64 * 64 : 4 * model.hidden_size;
  mlp.intermediate_size = c.find_integer("ffn_hidden_size", any_size).value_or(usual);
  const auto experts = c.find_integer("num_experts", any_experts);
  if (!experts) return;
  MoeSpec moe;
  moe.experts = *experts;
  moe.experts_per_token = c.find_integer("moe_router_topk", {1, *experts}).value_or(2);
  moe.router_groups = c.find_integer("moe_router_num_groups", {1, *experts}).value_or(1);
  moe.groups_per_token =
      c.find_integer("moe_router_group_topk", {1, moe.router_groups}).value_or(moe.router_groups);
  moe.intermediate_size =
      c.find_integer("moe_ffn_hidden_size", any_size).value_or(mlp.intermediate_size);
  moe.shared_intermediate_size =
      c.find_integer("moe_shared_expert_intermediate_size", any_size).value_or(0);
  moe.latent_size = c.find_integer("moe_latent_size", any_size).value_or(0);
  moe.shared_expert_gate =
      moe.shared_intermediate_size > 0 && c.find_boolean("moe_shared_expert_gate").value_or(false);
  moe.gated = mlp.gated;
  moe.expert_bias = mlp.bias;
  moe.clamped = c.has("activation_func_clamp_value");
  moe.router_bias = c.find_boolean("moe_router_enable_expert_bias").value_or(false);
  model.moe = moe;
  if (!c.has("hybrid_layer_pattern")) place_experts(c, model);
}

}  // namespace

ModelSpec import_megatron_model(const JsonObject& c) {
  ModelSpec model;
  model.family = megatron_model_type;
  const auto pattern = c.find_string("hybrid_layer_pattern");
  model.layers = pattern ? layers_of_pattern(*pattern) : c.integer("num_layers", any_layers);
  model.hidden_size = c.integer("hidden_size", any_size);
  model.vocab_size = c.integer("vocab_size", any_size);
  model.norm = c.find_string("normalization") == "RMSNorm" ? Norm::rms : Norm::layer;
  model.max_position_embeddings = c.find_integer("max_position_embeddings", any_size).value_or(0);
  const std::string positions =
      c.find_string("position_embedding_type").value_or("learned_absolute");
  if (positions == "learned_absolute") {
    if (model.max_position_embeddings == 0) c.fail("no 'max-position-embeddings'");
    model.learned_positions = model.max_position_embeddings;
  }
  model.attention.rotary = positions != "none";
  model.tied_embeddings = !c.find_boolean("untie_embeddings_and_output_weights").value_or(false);
  read_attention(c, model);
  read_mlp(c, model);
  place_linear_attention(c, model);
  if (pattern) read_hybrid_layers(c, model);
  check_size(c, model);
  return model;
}

}  // namespace zeroplan
