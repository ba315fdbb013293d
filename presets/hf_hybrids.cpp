// Which layers attend linearly or are state spaces, and how? Front doors: each family's.
#include "presets/hf_hybrids.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "presets/half_letters.hpp"
#include "presets/hf_import.hpp"
#include "presets/hf_quirks.hpp"
#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

// Granite's files say mamba and attention.
bool is_linear_type(std::string_view type, bool scans) {
  return type == "linear_attention" || (scans && type == "mamba");
}

bool is_full_type(std::string_view type, bool scans) {
  return type == "full_attention" || (scans && type == "attention");
}

// Whether each layer has linear attention, or scans: as the file lists them, or all but each so
// manieth.
std::vector<bool> linear_layers(const JsonObject& config, std::int64_t layers, bool scans = false) {
  std::vector<bool> linear(static_cast<std::size_t>(layers));
  if (config.has("layer_types")) {
    const std::vector<std::string> types = config.strings("layer_types");
    if (types.size() < linear.size()) {
      config.fail(fmt::format("'layer_types' lists {} of {} layers", types.size(), layers));
    }
    for (std::size_t i = 0; i < linear.size(); ++i) {
      const std::string& type = types[i];
      linear[i] = is_linear_type(type, scans);
      if (linear[i] || is_full_type(type, scans)) continue;
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

// All but the width of a head, under Bamba's keys or Nemotron-H's.
StateSpaceSpec read_state_space(const JsonObject& config) {
  StateSpaceSpec spec;
  spec.heads = read_size(config, {"mamba_n_heads", "mamba_num_heads"}, any_heads);
  spec.groups = read_size(config, {"mamba_n_groups", "n_groups"}, any_heads);
  spec.state = read_size(config, {"mamba_d_state", "ssm_state_size"}, any_size);
  spec.convolution = read_size(config, {"mamba_d_conv", "conv_kernel"}, any_size);
  spec.chunk = read_size(config, {"mamba_chunk_size", "chunk_size"}, any_size);
  const std::string_view bias = config.has("use_conv_bias") ? "use_conv_bias" : "mamba_conv_bias";
  spec.convolution_bias = config.find_boolean(bias).value_or(true);
  spec.bias = config.find_boolean("mamba_proj_bias").value_or(false);
  if (spec.heads % spec.groups != 0) {
    config.fail(
        fmt::format("{} groups of a state space do not divide {} heads", spec.groups, spec.heads));
  }
  return spec;
}

// The width of Bamba's heads, which together are some times as wide as the stream.
std::int64_t read_expanded_head(const JsonObject& config,
                                std::int64_t heads,
                                std::int64_t hidden_size) {
  const std::int64_t features =
      hidden_size * config.find_integer("mamba_expand", any_size).value_or(2);
  const bool derived = !config.has("mamba_d_head") || config.value().at("mamba_d_head") == "auto";
  const std::int64_t width = derived ? features / heads : config.integer("mamba_d_head", any_size);
  if (heads * width != features) {
    config.fail(fmt::format("{} heads of {} are not mamba_expand x hidden_size, {}", heads, width,
                            features));
  }
  return width;
}

// Whether each layer is a state space: as the file lists them, or all but those of these numbers.
std::vector<bool> state_space_layers(const JsonObject& config, std::int64_t layers) {
  if (config.has("layer_types")) return linear_layers(config, layers, true);
  std::vector<bool> scans(static_cast<std::size_t>(layers), true);
  if (!config.has("attn_layer_indices")) return scans;
  for (const std::int64_t i : config.integers("attn_layer_indices", {0, any_layers.most})) {
    if (i < layers) scans[static_cast<std::size_t>(i)] = false;  // a shorter model has no others
  }
  return scans;
}

// Of each letter of the pattern that stands under this key.
std::vector<LayerKind> halves_of_pattern(const JsonObject& config, std::string_view key) {
  std::vector<LayerKind> kinds;
  for (const char letter : config.string(key)) {
    const auto kind = half_of(letter);
    if (!kind) {
      config.fail(
          fmt::format("'{}' has {}, not M, *, - or E", key, in_quotes(std::string(1, letter))));
    }
    kinds.push_back(*kind);
  }
  return kinds;
}

std::vector<LayerKind> listed_halves(const JsonObject& config) {
  constexpr std::string_view pattern = "hybrid_override_pattern";
  if (config.has(pattern)) return halves_of_pattern(config, pattern);
  const std::string_view key =
      config.has("layers_block_type") ? "layers_block_type" : "layer_types";
  if (!config.has(key)) config.fail("no 'hybrid_override_pattern' says what its layers are");
  constexpr std::array<std::tuple<std::string_view, std::string_view, LayerKind>, 4> known{
      {{"mamba", "linear_attention", LayerKind::linear},
       {"attention", "full_attention", LayerKind::attention},
       {"mlp", "mlp", LayerKind::mlp},
       {"moe", "moe", LayerKind::experts}}};
  std::vector<LayerKind> kinds;
  for (const std::string& type : config.strings(key)) {
    const auto found = std::ranges::find_if(known, [&](const auto& kind) {
      return std::get<0>(kind) == type || std::get<1>(kind) == type;
    });
    if (found == known.end()) {
      config.fail(
          fmt::format("'{}' has {}, not mamba, attention, mlp or moe", key, in_quotes(type)));
    }
    kinds.push_back(std::get<LayerKind>(*found));
  }
  return kinds;
}

void place_state_spaces(const JsonObject& config, ModelSpec& model) {
  const std::vector<bool> scans = state_space_layers(config, model.layers);
  if (std::ranges::find(scans, true) == scans.end()) return;
  StateSpaceSpec mixer = read_state_space(config);
  mixer.head_dim = read_expanded_head(config, mixer.heads, model.hidden_size);
  model.state_space = mixer;
  model.layer_kinds = kinds_with_linear_attention(model, scans);
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

void granite_hybrid_quirks(const JsonObject& config, ModelSpec& model) {
  model.attention.rotary = config.find_string("position_embedding_type") == "rope";
  place_state_spaces(config, model);
}

void bamba_quirks(const JsonObject& config, ModelSpec& model) {
  llama_quirks(config, model);
  place_state_spaces(config, model);
}

void nemotron_h_quirks(const JsonObject& config, ModelSpec& model) {
  squared_relu_quirks(config, model);
  if (model.mlp.bias && model.moe) {
    config.fail("'mlp_bias' must be false: no published Nemotron-H with experts has biases");
  }
  model.attention.rotary = false;
  model.tied_embeddings = false;  // whatever the file says: its class ties none
  StateSpaceSpec mixer = read_state_space(config);
  mixer.head_dim = read_size(config, {"mamba_head_dim"}, any_size);
  mixer.bias = config.find_boolean("use_bias").value_or(mixer.bias);
  model.state_space = mixer;
  constexpr std::string_view of_modules = "mtp_hybrid_override_pattern";
  model.mtp_layers = config.find_integer("num_nextn_predict_layers", {0, 64}).value_or(0);
  if (model.mtp_layers > 0 && config.has(of_modules)) {
    model.mtp_kinds = halves_of_pattern(config, of_modules);
  }
}

std::vector<LayerKind> halves_of_layers(const JsonObject& config, std::int64_t layers) {
  std::vector<LayerKind> kinds = listed_halves(config);
  if (std::ssize(kinds) != layers) {
    config.fail(
        fmt::format("{} layers are listed, not num_hidden_layers, {}", kinds.size(), layers));
  }
  return kinds;
}

std::int64_t listed_layers(const JsonObject& config) {
  return std::ssize(listed_halves(config));
}

}  // namespace zeroplan
