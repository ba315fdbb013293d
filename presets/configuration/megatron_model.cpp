// How does Megatron-LM say a model? Front door: add_megatron_model.
#include "presets/configuration/megatron_model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "presets/hf_import.hpp"
#include "presets/layer_pattern.hpp"
#include "presets/megatron_hybrid.hpp"

namespace zeroplan {
namespace {

// Of each layer, whether its kind is so.
std::vector<bool> layers_where(const ModelSpec& model, bool (*is_so)(LayerKind)) {
  std::vector<bool> layers;
  for (std::int64_t i = 0; i < model.layers; ++i) layers.push_back(is_so(kind_of(model, i)));
  return layers;
}

// --linear-attention-freq: one layer in so many compares all keys, the last of them; else each
// layer is said.
Entry linear_frequency(const ModelSpec& model) {
  const std::vector<bool> linear = layers_where(model, is_linear);
  const auto first = std::ranges::find(linear, false);
  const auto step = static_cast<std::size_t>(first - linear.begin()) + 1;
  bool even = first != linear.end();
  for (std::size_t i = 0; i < linear.size(); ++i) even = even && linear[i] == ((i + 1) % step != 0);
  constexpr std::string_view name = "linear-attention-freq";
  if (even) return {std::string(name), static_cast<std::int64_t>(step)};
  return {std::string(name), layer_pattern(linear)};
}

void add_linear_attention(std::vector<Entry>& out, const ModelSpec& model) {
  if (!model.linear_attention) return;
  const LinearAttentionSpec& a = *model.linear_attention;
  out.push_back({"experimental-attention-variant", "gated_delta_net"});
  out.push_back(linear_frequency(model));
  out.push_back({"linear-conv-kernel-dim", a.convolution});
  out.push_back({"linear-key-head-dim", a.key_head_dim});
  out.push_back({"linear-value-head-dim", a.value_head_dim});
  out.push_back({"linear-num-key-heads", a.key_heads});
  out.push_back({"linear-num-value-heads", a.value_heads});
}

void add_attention(std::vector<Entry>& out, const ModelSpec& model) {
  const AttentionSpec& a = model.attention;
  out.push_back({"num-attention-heads", a.heads});
  if (a.mla) {
    out.push_back({"multi-latent-attention", nullptr});
    if (a.mla->q_lora_rank > 0) out.push_back({"q-lora-rank", a.mla->q_lora_rank});
    out.push_back({"kv-lora-rank", a.mla->kv_lora_rank});
    out.push_back({"qk-head-dim", a.mla->qk_nope_head_dim});
    out.push_back({"qk-pos-emb-head-dim", a.mla->qk_rope_head_dim});
    out.push_back({"v-head-dim", a.mla->v_head_dim});
    // Nothing reads it then, but where it is not given heads must divide the hidden size.
    if (model.hidden_size % a.heads != 0) {
      out.push_back({"kv-channels", a.mla->qk_nope_head_dim + a.mla->qk_rope_head_dim});
    }
  } else {
    if (a.kv_heads != a.heads) {
      out.push_back({"group-query-attention", nullptr});
      out.push_back({"num-query-groups", a.kv_heads});
    }
    out.push_back({"kv-channels", a.head_dim});
  }
  // With latent attention the norms of both latents go by the same name.
  if (a.qk_norm || a.mla) out.push_back({"qk-layernorm", nullptr});
  if (a.sinks) out.push_back({"softmax-type", "learnable"});
  if (a.output_gate) out.push_back({"attention-output-gate", nullptr});
}

// core/transformer/utils.py is_layer_window_attention: layers whose number the frequency divides
// see all keys.
void add_window(std::vector<Entry>& out, const ModelSpec& model) {
  const AttentionSpec& a = model.attention;
  if (a.windowed_layers == 0) return;
  out.push_back({"window-size", fmt::format("{},0", a.sliding_window - 1)});
  const std::int64_t whole = model.layers - a.windowed_layers;
  if (whole > 0) out.push_back({"window-attn-skip-freq", model.layers / whole});
}

// The bounded gate is gpt-oss's: swish(1.702 x) (1 + y), both of them bounded by 7.
void add_activation(std::vector<Entry>& out, const ModelSpec& model) {
  if (model.moe && model.moe->clamped) {
    out.push_back({"quick-geglu", nullptr});
    out.push_back({"glu-linear-offset", 1});
    out.push_back({"activation-func-clamp-value", 7});
  } else if (model.moe ? model.moe->gated : model.mlp.gated) {
    out.push_back({"swiglu", nullptr});
  } else if (model.mlp.squared_relu) {
    out.push_back({"squared-relu", nullptr});
  }
}

// Learned positions aside, arguments leave ALiBi to code of one's own.
std::string_view positions_of(const ModelSpec& model) {
  if (model.learned_positions > 0) return "learned_absolute";
  if (!model.attention.rotary) return "none";
  return model.attention.yarn && !model.attention.mla ? "yarn" : "rope";
}

void add_experts(std::vector<Entry>& out, const ModelSpec& model) {
  const MoeSpec& moe = *model.moe;
  out.push_back({"num-experts", moe.experts});
  out.push_back({"moe-router-topk", moe.experts_per_token});
  if (moe.groups_per_token < moe.router_groups) {
    out.push_back({"moe-router-num-groups", moe.router_groups});
    out.push_back({"moe-router-group-topk", moe.groups_per_token});
  }
  out.push_back({"moe-ffn-hidden-size", moe.intermediate_size});
  // Adjusted, not learned, beside a sigmoid.
  if (moe.router_bias && !moe.expert_bias) {
    out.push_back({"moe-router-score-function", "sigmoid"});
    out.push_back({"moe-router-enable-expert-bias", nullptr});
  }
  if (moe.shared_intermediate_size > 0) {
    out.push_back({"moe-shared-expert-intermediate-size", moe.shared_intermediate_size});
    if (moe.shared_expert_gate) out.push_back({"moe-shared-expert-gate", nullptr});
  }
  if (moe.latent_size > 0) out.push_back({"moe-latent-size", moe.latent_size});
  if (!is_of_halves(model) && layers_with_experts(model, 0, model.layers) < model.layers) {
    out.push_back({"moe-layer-freq", layer_pattern(layers_where(model, has_experts))});
  }
}

// Layers of one half each, for pretrain_hybrid.py.
void add_halves(std::vector<Entry>& out, const ModelSpec& model) {
  out.push_back({"spec", std::vector<std::string>{"megatron.core.models.hybrid.hybrid_layer_specs",
                                                  "hybrid_stack_spec"}});
  out.push_back({"hybrid-layer-pattern", pattern_of(model.layer_kinds)});
  if (!model.state_space) return;
  const StateSpaceSpec& mixer = *model.state_space;
  out.push_back({"mamba-num-heads", mixer.heads});
  out.push_back({"mamba-head-dim", mixer.head_dim});
  out.push_back({"mamba-num-groups", mixer.groups});
  out.push_back({"mamba-state-dim", mixer.state});
}

}  // namespace

void add_megatron_model(std::vector<Entry>& out, const ModelSpec& model) {
  is_of_halves(model) ? add_halves(out, model) : out.push_back({"num-layers", model.layers});
  out.push_back({"hidden-size", model.hidden_size});
  if (model.mlp.intermediate_size > 0) {
    out.push_back({"ffn-hidden-size", model.mlp.intermediate_size});
  }
  add_attention(out, model);
  add_linear_attention(out, model);
  add_window(out, model);
  out.push_back({"vocab-size", model.vocab_size});
  out.push_back({"position-embedding-type", std::string(positions_of(model))});
  out.push_back({"normalization", model.norm == Norm::rms ? "RMSNorm" : "LayerNorm"});
  add_activation(out, model);
  const bool bias = model.moe ? model.moe->expert_bias : model.mlp.bias;
  if (!bias) out.push_back({"disable-bias-linear", nullptr});
  if (model.attention.qkv_bias && !bias) out.push_back({"add-qkv-bias", nullptr});
  if (!model.tied_embeddings) out.push_back({"untie-embeddings-and-output-weights", nullptr});
  if (model.moe) add_experts(out, model);
}

namespace {

// Arguments that say a model, by what their value is.
constexpr std::string_view numbers[] = {"num-layers",
                                        "hidden-size",
                                        "ffn-hidden-size",
                                        "num-attention-heads",
                                        "q-lora-rank",
                                        "kv-lora-rank",
                                        "qk-head-dim",
                                        "qk-pos-emb-head-dim",
                                        "v-head-dim",
                                        "num-query-groups",
                                        "kv-channels",
                                        "vocab-size",
                                        "num-experts",
                                        "moe-router-topk",
                                        "moe-router-num-groups",
                                        "moe-router-group-topk",
                                        "moe-ffn-hidden-size",
                                        "moe-shared-expert-intermediate-size",
                                        "max-position-embeddings",
                                        "window-attn-skip-freq",
                                        "linear-conv-kernel-dim",
                                        "linear-key-head-dim",
                                        "linear-value-head-dim",
                                        "linear-num-key-heads",
                                        "linear-num-value-heads",
                                        "mamba-num-heads",
                                        "mamba-head-dim",
                                        "mamba-num-groups",
                                        "mamba-state-dim",
                                        "moe-latent-size"};
constexpr std::string_view flags[] = {"multi-latent-attention",
                                      "group-query-attention",
                                      "qk-layernorm",
                                      "swiglu",
                                      "quick-geglu",
                                      "squared-relu",
                                      "disable-bias-linear",
                                      "add-qkv-bias",
                                      "untie-embeddings-and-output-weights",
                                      "moe-router-enable-expert-bias",
                                      "moe-shared-expert-gate",
                                      "attention-output-gate"};
constexpr std::string_view texts[] = {"position-embedding-type",
                                      "normalization",
                                      "moe-layer-freq",
                                      "softmax-type",
                                      "activation-func-clamp-value",
                                      "window-size",
                                      "experimental-attention-variant",
                                      "linear-attention-freq",
                                      "hybrid-layer-pattern"};

std::string as_key(std::string_view argument) {
  std::string key(argument);
  std::replace(key.begin(), key.end(), '-', '_');
  return key;
}

}  // namespace

std::string megatron_config(const Entries& entries, std::string& missing) {
  const auto has = [&](std::string_view key) { return entries.has(key); };
  const bool layers = has("num-layers") || has("hybrid-layer-pattern");
  if (!layers || !has("hidden-size") || !has("num-attention-heads")) return "";
  nlohmann::ordered_json config{{"model_type", megatron_model_type}};
  for (const std::string_view key : numbers) {
    if (has(key)) config[as_key(key)] = *entries.count(key);
  }
  for (const std::string_view key : flags) {
    if (has(key)) config[as_key(key)] = true;
  }
  for (const std::string_view key : texts) {
    if (const auto text = entries.text(key)) config[as_key(key)] = *text;
  }
  if (!has("vocab-size")) {
    constexpr std::int64_t words_of_gpt2 = 50'257;
    if (entries.text("tokenizer-type") != "GPT2BPETokenizer") {
      missing = "without --vocab-size the arguments say no whole model: its tokenizer is elsewhere";
      return "";
    }
    config["vocab_size"] = words_of_gpt2;
  }
  return config.dump(2);
}

std::vector<std::string> take_megatron_model(Entries& entries) {
  return entries.take_all({"num-layers",
                           "hidden-size",
                           "ffn-hidden-size",
                           "num-attention-heads",
                           "multi-latent-attention",
                           "q-lora-rank",
                           "kv-lora-rank",
                           "qk-head-dim",
                           "qk-pos-emb-head-dim",
                           "v-head-dim",
                           "group-query-attention",
                           "num-query-groups",
                           "kv-channels",
                           "qk-layernorm",
                           "vocab-size",
                           "position-embedding-type",
                           "normalization",
                           "softmax-type",
                           "window-size",
                           "window-attn-skip-freq",
                           "swiglu",
                           "quick-geglu",
                           "squared-relu",
                           "glu-linear-offset",
                           "activation-func-clamp-value",
                           "disable-bias-linear",
                           "add-qkv-bias",
                           "untie-embeddings-and-output-weights",
                           "num-experts",
                           "moe-router-topk",
                           "moe-ffn-hidden-size",
                           "moe-shared-expert-intermediate-size",
                           "moe-shared-expert-gate",
                           "attention-output-gate",
                           "experimental-attention-variant",
                           "linear-attention-freq",
                           "linear-conv-kernel-dim",
                           "linear-key-head-dim",
                           "linear-value-head-dim",
                           "linear-num-key-heads",
                           "linear-num-value-heads",
                           "spec",
                           "hybrid-layer-pattern",
                           "mamba-num-heads",
                           "mamba-head-dim",
                           "mamba-num-groups",
                           "mamba-state-dim",
                           "moe-latent-size",
                           "moe-layer-freq",
                           "moe-router-score-function",
                           "moe-router-enable-expert-bias",
                           "max-position-embeddings"});
}

}  // namespace zeroplan
