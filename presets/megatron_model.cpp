// Which model do Megatron-LM's arguments build? Front door: import_megatron_model.
// Source: Megatron-LM @d98e8a64dd training/arguments.py validate_args and
// core/transformer/transformer_config.py.
#include <fmt/format.h>

#include <charconv>

#include "presets/hf_families.hpp"
#include "presets/hf_import.hpp"

namespace zeroplan {
namespace {

// Layers of a pattern as --moe-layer-freq has it: ([0]*3+[1]*58), or [0,1]*12. Empty where the text
// is not of that form.
std::vector<LayerKind> read_pattern(std::string_view text) {
  std::vector<LayerKind> kinds;
  const auto skip = [&](std::string_view signs) {
    while (!text.empty() && signs.find(text.front()) != std::string_view::npos) {
      text.remove_prefix(1);
    }
  };
  for (skip("( +"); !text.empty(); skip(") +")) {
    if (text.front() != '[') return {};
    const std::size_t end = text.find(']');
    if (end == std::string_view::npos) return {};
    std::vector<LayerKind> term;
    for (const char c : text.substr(1, end - 1)) {
      if (c == '0' || c == '1') term.push_back(c == '1' ? LayerKind::moe : LayerKind::dense);
    }
    text.remove_prefix(end + 1);
    skip(" ");
    std::int64_t times = 1;
    if (text.starts_with('*')) {
      text.remove_prefix(1);
      skip(" ");
      const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), times);
      if (error != std::errc{} || times < 0 || times > any_layers.most) return {};
      text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    }
    for (std::int64_t i = 0; i < times; ++i) kinds.insert(kinds.end(), term.begin(), term.end());
    if (static_cast<std::int64_t>(kinds.size()) > any_layers.most) return {};
  }
  return kinds;
}

// Every N-th layer from the first, or a pattern.
void place_experts(const JsonObject& c, ModelSpec& model) {
  const auto frequency = c.find_string("moe_layer_freq").value_or("1");
  std::int64_t step = 0;
  const char* last = frequency.data() + frequency.size();
  const auto [end, error] = std::from_chars(frequency.data(), last, step);
  if (error == std::errc{} && end == last && step > 0) {
    for (std::int64_t layer = 0; layer < model.layers && step > 1; ++layer) {
      model.layer_kinds.push_back(layer % step == 0 ? LayerKind::moe : LayerKind::dense);
    }
    return;
  }
  model.layer_kinds = read_pattern(frequency);
  if (static_cast<std::int64_t>(model.layer_kinds.size()) != model.layers) {
    c.fail(fmt::format("moe-layer-freq '{}': must say each of the {} layers", frequency,
                       model.layers));
  }
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
  moe.gated = mlp.gated;
  moe.expert_bias = mlp.bias;
  moe.clamped = c.has("activation_func_clamp_value");
  moe.router_bias = c.find_boolean("moe_router_enable_expert_bias").value_or(false);
  model.moe = moe;
  place_experts(c, model);
}

}  // namespace

ModelSpec import_megatron_model(const JsonObject& c) {
  ModelSpec model;
  model.family = megatron_model_type;
  model.layers = c.integer("num_layers", any_layers);
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
  model.tied_embeddings = !c.find_boolean("untie_embeddings_and_output_weights").value_or(false);
  read_attention(c, model);
  read_mlp(c, model);
  check_size(c, model);
  return model;
}

}  // namespace zeroplan
