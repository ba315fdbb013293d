// What does one family's config.json say that no other's does? Front doors: each family's.
#include "presets/hf_quirks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

void set_biases(ModelSpec& model, bool all) {
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = all;
}

// Whether each layer has linear attention: as the file lists them, or all but each so manieth.
std::vector<bool> linear_layers(const JsonObject& config, std::int64_t layers) {
  std::vector<bool> linear(static_cast<std::size_t>(layers));
  if (config.has("layer_types")) {
    const std::vector<std::string> types = config.strings("layer_types");
    if (types.size() < linear.size()) {
      config.fail(fmt::format("'layer_types' lists {} of {} layers", types.size(), layers));
    }
    for (std::size_t i = 0; i < linear.size(); ++i) {
      const std::string& type = types[i];
      linear[i] = type == "linear_attention";
      if (linear[i] || type == "full_attention") continue;
      config.fail(
          fmt::format("'layer_types' has {} for layer {}, not linear_attention or "
                      "full_attention",
                      in_quotes(type), i));
    }
    return linear;
  }
  const auto interval = static_cast<std::size_t>(
      config.find_integer("full_attention_interval", any_layers).value_or(4));
  for (std::size_t i = 0; i < linear.size(); ++i) linear[i] = (i + 1) % interval != 0;
  return linear;
}

LinearAttentionSpec read_linear_attention(const JsonObject& config) {
  LinearAttentionSpec spec;
  spec.key_heads = read_size(config, {"linear_num_key_heads"}, any_heads);
  spec.value_heads = read_size(config, {"linear_num_value_heads"}, any_heads);
  spec.key_head_dim = read_size(config, {"linear_key_head_dim"}, any_size);
  spec.value_head_dim = read_size(config, {"linear_value_head_dim"}, any_size);
  spec.convolution = read_size(config, {"linear_conv_kernel_dim"}, any_size);
  if (spec.value_heads % spec.key_heads != 0) {
    config.fail(fmt::format("{} key heads of linear attention do not divide {} value heads",
                            spec.key_heads, spec.value_heads));
  }
  return spec;
}

StateSpaceSpec read_state_space(const JsonObject& config, std::int64_t hidden_size) {
  StateSpaceSpec spec;
  const std::int64_t times = config.find_integer("mamba_expand", any_size).value_or(2);
  const std::int64_t features = times * hidden_size;
  spec.heads = read_size(config, {"mamba_n_heads"}, any_heads);
  const bool derived = !config.has("mamba_d_head") || config.value().at("mamba_d_head") == "auto";
  spec.head_dim = derived ? features / spec.heads : config.integer("mamba_d_head", any_size);
  spec.groups = read_size(config, {"mamba_n_groups"}, any_heads);
  spec.state = read_size(config, {"mamba_d_state"}, any_size);
  spec.convolution = read_size(config, {"mamba_d_conv"}, any_size);
  spec.chunk = read_size(config, {"mamba_chunk_size"}, any_size);
  spec.convolution_bias = config.find_boolean("mamba_conv_bias").value_or(true);
  spec.bias = config.find_boolean("mamba_proj_bias").value_or(false);
  if (spec.features() != features) {
    config.fail(fmt::format("{} heads of {} are not mamba_expand x hidden_size, {}", spec.heads,
                            spec.head_dim, features));
  }
  if (spec.heads % spec.groups != 0) {
    config.fail(
        fmt::format("{} groups of a state space do not divide {} heads", spec.groups, spec.heads));
  }
  return spec;
}

// Whether each layer is a state space: as the file lists them, or all but those of these numbers.
std::vector<bool> state_space_layers(const JsonObject& config, std::int64_t layers) {
  if (config.has("layer_types")) return linear_layers(config, layers);
  std::vector<bool> scans(static_cast<std::size_t>(layers), true);
  if (!config.has("attn_layer_indices")) return scans;
  for (const std::int64_t i : config.integers("attn_layer_indices", {0, any_layers.most})) {
    if (i < layers) scans[static_cast<std::size_t>(i)] = false;  // a shorter model has no others
  }
  return scans;
}

}  // namespace

std::vector<LayerKind> kinds_with_linear_attention(const ModelSpec& model,
                                                   const std::vector<bool>& linear) {
  std::vector<LayerKind> kinds;
  for (std::int64_t i = 0; i < model.layers; ++i) {
    const LayerKind kind = kind_of(model, i);
    kinds.push_back(linear[static_cast<std::size_t>(i)] ? with_linear_attention(kind) : kind);
  }
  return kinds;
}

void qwen_hybrid_quirks(const JsonObject& config, ModelSpec& model) {
  model.attention.output_gate = true;
  const std::vector<bool> linear = linear_layers(config, model.layers);
  if (std::ranges::find(linear, true) == linear.end()) return;
  model.linear_attention = read_linear_attention(config);
  model.linear_attention->joined_projections = model.family == "qwen3_next";
  model.layer_kinds = kinds_with_linear_attention(model, linear);
}

void bamba_quirks(const JsonObject& config, ModelSpec& model) {
  llama_quirks(config, model);
  const std::vector<bool> scans = state_space_layers(config, model.layers);
  if (std::ranges::find(scans, true) == scans.end()) return;
  model.state_space = read_state_space(config, model.hidden_size);
  model.layer_kinds = kinds_with_linear_attention(model, scans);
}

void falcon_quirks(const JsonObject& config, ModelSpec& model) {
  const bool new_architecture = config.find_boolean("new_decoder_architecture").value_or(false);
  const bool parallel = config.find_boolean("parallel_attn").value_or(true);
  model.parallel_residual = new_architecture || parallel;
  if (new_architecture) {
    model.norms_per_layer = config.find_integer("num_ln_in_parallel_attn", {1, 2}).value_or(2);
  } else {
    model.norms_per_layer = parallel ? 1 : 2;
    // The older architecture knows one shared key-value head or one for each query head.
    model.attention.kv_heads =
        config.find_boolean("multi_query").value_or(true) ? 1 : model.attention.heads;
  }
  set_biases(model, config.find_boolean("bias").value_or(false));
}

void opt_quirks(const JsonObject& config, ModelSpec& model) {
  const std::int64_t width = read_size(config, {"word_embed_proj_dim"}, any_size);
  if (width != model.hidden_size) model.embedding_size = width;
  model.final_norm = config.find_boolean("do_layer_norm_before").value_or(true) &&
                     !config.find_boolean("_remove_final_layer_norm").value_or(false);
  set_biases(model, config.find_boolean("enable_bias").value_or(true));
}

void neox_quirks(const JsonObject& config, ModelSpec& model) {
  model.parallel_residual = config.find_boolean("use_parallel_residual").value_or(true);
}

void phi_quirks(const JsonObject& config, ModelSpec&) {
  if (config.find_boolean("qk_layernorm").value_or(false)) {
    config.fail("'qk_layernorm' must be false: no published phi has these norms");
  }
}

void llama_quirks(const JsonObject& config, ModelSpec& model) {
  model.mlp.bias = config.find_boolean("mlp_bias").value_or(false);
}

void llama4_quirks(const JsonObject& config, ModelSpec& model) {
  model.attention.plain_qk_norm = config.find_boolean("use_qk_norm").value_or(true);
}

void squared_relu_quirks(const JsonObject& config, ModelSpec& model) {
  llama_quirks(config, model);
  model.mlp.squared_relu = true;
}

void seed_oss_quirks(const JsonObject& config, ModelSpec& model) {
  llama_quirks(config, model);
  model.attention.output_bias = config.find_boolean("attention_out_bias").value_or(false);
}

void starcoder2_quirks(const JsonObject& config, ModelSpec& model) {
  set_biases(model, config.find_boolean("use_bias").value_or(true));
}

void bloom_quirks(const JsonObject&, ModelSpec& model) {
  model.embedding_norm = true;
}

void glm_quirks(const JsonObject& config, ModelSpec& model) {
  model.attention.qk_norm = config.find_boolean("use_qk_norm").value_or(false);
}

void olmoe_quirks(const JsonObject& config, ModelSpec&) {
  if (config.has("clip_qkv")) {
    config.fail("'clip_qkv' must be null: no published OLMoE clips queries, keys and values");
  }
}

void gpt_oss_quirks(const JsonObject&, ModelSpec& model) {
  model.attention.sinks = true;
  model.attention.yarn = true;  // its configuration's default, with a factor of 32
}

}  // namespace zeroplan
