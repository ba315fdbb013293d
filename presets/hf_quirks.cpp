// What does one family's config.json say that no other's does? Front doors: each family's.
#include "presets/hf_quirks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "presets/nearest_name.hpp"

namespace zeroplan {
namespace {

void set_biases(ModelSpec& model, bool all) {
  model.attention.qkv_bias = model.attention.output_bias = model.mlp.bias = all;
}

// Weights for each feature of each head, as norms of all heads at once have.
void set_whole_head_norms(ModelSpec& model, bool there) {
  model.attention.qk_norm = model.attention.joint_qk_norm = there;
}

void refuse_switch(const JsonObject& config, std::string_view key, std::string_view why) {
  if (config.find_boolean(key).value_or(false)) {
    config.fail(fmt::format("'{}' must be false: {}", key, why));
  }
}

}  // namespace

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
  refuse_switch(config, "qk_layernorm", "no published phi has these norms");
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

void phimoe_quirks(const JsonObject& config, ModelSpec& model) {
  model.head_bias = config.find_boolean("lm_head_bias").value_or(false);
}

void qwen2_moe_quirks(const JsonObject& config, ModelSpec& model) {
  model.attention.qkv_bias = config.find_boolean("qkv_bias").value_or(true);
}

void cohere_quirks(const JsonObject& config, ModelSpec& model) {
  model.norm_bias = false;
  set_whole_head_norms(model, config.find_boolean("use_qk_norm").value_or(false));
}

void ernie_quirks(const JsonObject& config, ModelSpec& model) {
  set_biases(model, config.find_boolean("use_bias").value_or(false));
}

void ernie_moe_quirks(const JsonObject& config, ModelSpec&) {
  refuse_switch(config, "use_bias", "no published ERNIE 4.5 has biases");
}

void afmoe_quirks(const JsonObject& config, ModelSpec& model) {
  refuse_switch(config, "attention_bias", "no published Trinity has biases");
  model.attention.output_gate = true;
}

void helium_quirks(const JsonObject& config, ModelSpec& model) {
  llama_quirks(config, model);
  if (query_width(model.attention) == model.hidden_size) return;
  config.fail(
      "heads must be as wide together as the hidden state: Helium's output projection is square");
}

void hy_v3_quirks(const JsonObject& config, ModelSpec&) {
  refuse_switch(config, "mlp_bias", "no published Hy3 has biases in its MLPs");
}

void hyperclovax_quirks(const JsonObject& config, ModelSpec& model) {
  llama_quirks(config, model);
  if (config.find_boolean("use_post_norm").value_or(true)) model.norms_per_layer = 4;
}

// Files older than transformers 5 have keys of their own.
void internlm3_quirks(const JsonObject& config, ModelSpec& model) {
  llama_quirks(config, model);
  refuse_switch(config, "qkv_bias", "no published InternLM3 has biases");
  refuse_switch(config, "bias", "no published InternLM3 has biases");
}

void stablelm_quirks(const JsonObject& config, ModelSpec& model) {
  model.attention.qkv_bias = config.find_boolean("use_qkv_bias").value_or(false);
  model.parallel_residual = config.find_boolean("use_parallel_residual").value_or(false);
  if (model.parallel_residual) model.norms_per_layer = 1;
  set_whole_head_norms(model, config.find_boolean("qk_layernorm").value_or(false));
}

void gpt_oss_quirks(const JsonObject&, ModelSpec& model) {
  model.attention.sinks = true;
  model.attention.yarn = true;  // its configuration's default, with a factor of 32
}

}  // namespace zeroplan
