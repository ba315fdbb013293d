// Which tensors make up the model? Front door: layer_weights.
#include "cost_model/rank/weights.hpp"

#include <numeric>

namespace zeroplan {
namespace {

void add_norm(std::vector<Weight>& out, bool bias, std::string_view name, std::int64_t width) {
  out.push_back({.name = name, .module = name, .rows = width});
  if (bias) out.push_back({.name = "norm.bias", .module = name, .rows = width});
}

void add_linear(std::vector<Weight>& out, const Weight& weight, bool bias) {
  out.push_back(weight);
  if (!bias) return;
  // The bias of a row-parallel linear is added after the reduction, so every rank holds it whole.
  const Split split = weight.split == Split::columns ? Split::replicated : weight.split;
  out.push_back({.name = "bias",
                 .module = "bias",
                 .rows = weight.rows,
                 .split = split,
                 .copies = weight.copies,
                 .expert = weight.expert});
}

void add_grouped_attention(std::vector<Weight>& out, const AttentionSpec& a, std::int64_t h) {
  const std::int64_t q = a.heads * a.head_dim;
  const std::int64_t kv = a.kv_heads * a.head_dim;
  const std::int64_t gate = a.output_gate ? q : 0;
  add_linear(out, {"q_proj", "qkv", q + gate, h, Split::rows}, a.qkv_bias);
  add_linear(out, {"k_proj", "qkv", kv, h, Split::rows}, a.qkv_bias);
  add_linear(out, {"v_proj", "qkv", kv, h, Split::rows}, a.qkv_bias);
  add_linear(out, {"o_proj", "proj", h, q, Split::columns}, a.output_bias);
  if (a.qk_norm) {
    add_norm(out, false, "q_norm", a.joint_qk_norm ? q : a.head_dim);
    add_norm(out, false, "k_norm", a.joint_qk_norm ? kv : a.head_dim);
  }
  if (a.sinks)
    out.push_back({.name = "sinks", .module = "sinks", .rows = a.heads, .split = Split::rows});
}

void add_latent_attention(std::vector<Weight>& out, const AttentionSpec& a, std::int64_t h) {
  const MlaSpec& mla = *a.mla;
  const std::int64_t q = query_width(a);
  if (mla.q_lora_rank > 0) {
    add_linear(out, {"q_a_proj", "q_down", mla.q_lora_rank, h, Split::replicated}, a.qkv_bias);
    add_norm(out, false, "q_a_layernorm", mla.q_lora_rank);
    out.push_back({"q_b_proj", "q_up", q, mla.q_lora_rank, Split::rows});
  } else {
    out.push_back({"q_proj", "q", q, h, Split::rows});
  }
  const std::int64_t kv_a = mla.kv_lora_rank + mla.qk_rope_head_dim;
  const std::int64_t kv_b = a.heads * (mla.qk_nope_head_dim + mla.v_head_dim);
  add_linear(out, {"kv_a_proj", "kv_down", kv_a, h, Split::replicated}, a.qkv_bias);
  add_norm(out, false, "kv_a_layernorm", mla.kv_lora_rank);
  out.push_back({"kv_b_proj", "kv_up", kv_b, mla.kv_lora_rank, Split::rows});
  add_linear(out, {"o_proj", "proj", h, attention_output_width(a), Split::columns}, a.output_bias);
}

// transformers v5.24.0 models/qwen3_next/modeling_qwen3_next.py Qwen3NextGatedDeltaNet,
// models/qwen3_5/modeling_qwen3_5.py Qwen3_5GatedDeltaNet; Megatron-LM @d98e8a64dd
// core/ssm/gated_delta_net/common.py, which has one projection and divides all but the norm.
void add_linear_attention(std::vector<Weight>& out, const LinearAttentionSpec& a, std::int64_t h) {
  const auto vector = [&](std::string_view name, std::int64_t width, Split split = Split::rows) {
    out.push_back({.name = name, .module = name, .rows = width, .split = split});
  };
  const auto matrix = [&](std::string_view name, std::int64_t rows) {
    out.push_back({name, "in_proj", rows, h, Split::rows});
  };
  vector("dt_bias", a.value_heads);
  vector("A_log", a.value_heads);
  vector("conv1d", a.mixed() * a.convolution);
  if (a.joined_projections) {
    matrix("in_proj_qkvz", a.mixed() + a.values());
    matrix("in_proj_ba", 2 * a.value_heads);
  } else {
    matrix("in_proj_qkv", a.mixed());
    matrix("in_proj_z", a.values());
    matrix("in_proj_b", a.value_heads);
    matrix("in_proj_a", a.value_heads);
  }
  vector("gated_norm", a.value_head_dim, Split::replicated);
  out.push_back({"o_proj", "proj", h, a.values(), Split::columns});
}

// transformers v5.24.0 models/bamba/modeling_bamba.py BambaMixer; Megatron-LM @d98e8a64dd
// core/ssm/mamba_mixer.py, which divides all of them.
void add_state_space(std::vector<Weight>& out, const StateSpaceSpec& m, std::int64_t h) {
  const auto vector = [&](std::string_view name, std::int64_t width) {
    out.push_back({.name = name, .module = name, .rows = width, .split = Split::rows});
  };
  vector("dt_bias", m.heads);
  vector("A_log", m.heads);
  vector("D", m.heads);
  vector("conv1d", m.mixed() * m.convolution);
  if (m.convolution_bias) vector("conv1d.bias", m.mixed());
  add_linear(out, {"in_proj", "in_proj", m.projected(), h, Split::rows}, m.bias);
  vector("gated_norm", m.features());
  add_linear(out, {"o_proj", "proj", h, m.features(), Split::columns}, m.bias);
}

void add_mixer(std::vector<Weight>& out, const ModelSpec& model, LayerKind kind) {
  const std::int64_t h = model.hidden_size;
  if (is_linear(kind) && model.state_space) return add_state_space(out, *model.state_space, h);
  if (is_linear(kind)) return add_linear_attention(out, *model.linear_attention, h);
  if (model.attention.mla) return add_latent_attention(out, model.attention, h);
  add_grouped_attention(out, model.attention, h);
}

struct MlpShape {
  std::int64_t intermediate_size;
  bool gated;
  bool bias;
  std::int64_t copies = 1;
  bool expert = false;
  bool shared = false;
};

void add_mlp(std::vector<Weight>& out, const MlpShape& mlp, std::int64_t h) {
  const auto linear = [&](std::string_view name, std::string_view module, bool down) {
    return Weight{.name = name,
                  .module = module,
                  .rows = down ? h : mlp.intermediate_size,
                  .columns = down ? mlp.intermediate_size : h,
                  .split = down ? Split::columns : Split::rows,
                  .copies = mlp.copies,
                  .expert = mlp.expert};
  };
  const auto add = [&](std::string_view name, std::string_view module, bool down) {
    add_linear(out, linear(name, module, down), mlp.bias);
  };
  if (mlp.shared) {
    if (mlp.gated) add("shared_gate_proj", "shared_fc1", false);
    add("shared_up_proj", "shared_fc1", false);
    return add("shared_down_proj", "shared_fc2", true);
  }
  if (mlp.gated) add("gate_proj", "fc1", false);
  add("up_proj", "fc1", false);
  add("down_proj", "fc2", true);
}

// Experts of latents have two projections between those and the stream, which every rank has
// (Megatron-LM @d98e8a64dd core/transformer/moe/moe_layer.py).
void add_moe(std::vector<Weight>& out, const ModelSpec& model) {
  const MoeSpec& moe = *model.moe;
  const std::int64_t h = model.hidden_size;
  const auto add = [&](std::string_view name, std::int64_t rows, std::int64_t columns) {
    out.push_back({name, name, rows, columns, Split::replicated});
  };
  add_linear(out, {"router", "router", moe.experts, h, Split::replicated}, moe.router_bias);
  if (moe.latent_size > 0) {
    add("fc1_latent_proj", moe.latent_size, h);
    add("fc2_latent_proj", h, moe.latent_size);
  }
  const MlpShape routed{moe.intermediate_size, moe.gated, moe.expert_bias, moe.experts, true};
  add_mlp(out, routed, routed_width(model));
  if (moe.shared_intermediate_size > 0) {
    MlpShape shared{moe.shared_intermediate_size, moe.gated, moe.expert_bias};
    shared.shared = true;
    add_mlp(out, shared, h);
  }
  if (moe.shared_expert_gate) {
    out.push_back({"shared_expert_gate", "shared_gate", 1, h, Split::replicated});
  }
}

void append(std::vector<Weight>& out, const std::vector<Weight>& more) {
  out.insert(out.end(), more.begin(), more.end());
}

std::int64_t embedding_width(const ModelSpec& model) {
  return model.embedding_size > 0 ? model.embedding_size : model.hidden_size;
}

}  // namespace

std::vector<Weight> layer_weights(const ModelSpec& model, LayerKind kind, LayerPart part) {
  const std::int64_t h = model.hidden_size;
  std::vector<Weight> out;
  constexpr std::size_t usual = 24;
  out.reserve(usual);
  for (std::int64_t i = 0; i < norms_of(model, kind); ++i)
    add_norm(out, has_norm_bias(model), "norm", h);
  if (has_mixer(kind)) add_mixer(out, model, kind);
  if (has_experts(kind)) {
    add_moe(out, model);
  } else if (has_feed_forward(kind)) {
    add_mlp(out, {model.mlp.intermediate_size, model.mlp.gated, model.mlp.bias}, h);
  }
  std::erase_if(out,
                [&](const Weight& w) { return !(w.expert ? has_routed(part) : has_rest(part)); });
  for (Weight& w : out) w.wide = is_wide(kind);
  return out;
}

std::vector<Weight> embedding_weights(const ModelSpec& model) {
  const std::int64_t h = model.hidden_size;
  const std::int64_t width = embedding_width(model);
  std::vector<Weight> out{
      {"embed_tokens", "embedding", model.vocab_size, width, Split::vocabulary}};
  if (model.learned_positions > 0) {
    out.push_back({"embed_positions", "positions", model.learned_positions, h, Split::replicated});
  }
  if (width != h) out.push_back({"project_in", "project_in", h, width, Split::replicated});
  if (model.embedding_norm) add_norm(out, has_norm_bias(model), "embedding_norm", h);
  return out;
}

namespace {

// What leads into a module's layers.
void add_mtp_input(std::vector<Weight>& out, const ModelSpec& model) {
  const std::int64_t h = model.hidden_size;
  out.push_back({"eh_proj", "eh_proj", h, 2 * h, Split::rows});
  add_norm(out, has_norm_bias(model), "enorm", h);
  add_norm(out, has_norm_bias(model), "hnorm", h);
}

std::vector<Weight> mtp_layer_weights(const ModelSpec& model) {
  std::vector<Weight> out;
  for (const LayerKind kind : model.layers > 0 ? kinds_of_mtp_module(model) : LayerKinds{}) {
    append(out, layer_weights(model, kind));
  }
  return out;
}

}  // namespace

std::vector<Weight> head_weights(const ModelSpec& model) {
  const std::int64_t h = model.hidden_size;
  const std::int64_t width = embedding_width(model);
  std::vector<Weight> out;
  if (model.final_norm) add_norm(out, has_norm_bias(model), "final_norm", h);
  if (width != h) out.push_back({"project_out", "project_out", width, h, Split::replicated});
  const Weight head{"lm_head", "output", model.vocab_size, width, Split::vocabulary};
  if (!model.tied_embeddings) add_linear(out, head, model.head_bias);
  return out;
}

std::vector<Weight> mtp_end_weights(const ModelSpec& model) {
  std::vector<Weight> out;
  add_mtp_input(out, model);
  add_norm(out, has_norm_bias(model), "final_norm", model.hidden_size);
  return out;
}

std::vector<Weight> mtp_module_weights(const ModelSpec& model) {
  std::vector<Weight> out = mtp_layer_weights(model);
  append(out, mtp_end_weights(model));
  return out;
}

std::vector<Weight> mtp_weights(const ModelSpec& model) {
  if (model.mtp_layers == 0) return {};
  // Checkpoints of NVIDIA's hybrid models have embedding and head once.
  if (!model.mtp_kinds.empty()) return mtp_module_weights(model);
  std::vector<Weight> out = mtp_layer_weights(model);
  add_mtp_input(out, model);
  append(out, embedding_weights(model));
  append(out, head_weights(model));
  return out;
}

std::int64_t elements(std::span<const Weight> weights) {
  return std::accumulate(weights.begin(), weights.end(), std::int64_t{0},
                         [](std::int64_t sum, const Weight& w) { return sum + w.elements(); });
}

std::int64_t parameter_count(const ModelSpec& model) {
  std::int64_t total = elements(embedding_weights(model)) + elements(head_weights(model));
  for (const LayerKind kind : all_layer_kinds) {
    const std::int64_t count = layers_of_kind(model, 0, model.layers, kind);
    if (count > 0) total += count * elements(layer_weights(model, kind));
  }
  return total;
}

std::int64_t mtp_parameter_count(const ModelSpec& model) {
  return model.mtp_layers * elements(mtp_weights(model));
}

std::int64_t active_parameter_count(const ModelSpec& model) {
  const std::int64_t moe_layers = layers_with_experts(model, 0, model.layers);
  if (moe_layers == 0) return parameter_count(model);
  std::int64_t idle = 0;  // experts of one layer that a token does not visit
  for (const Weight& w : layer_weights(model, LayerKind::experts, LayerPart::routed)) {
    idle += w.rows * w.columns * (w.copies - model.moe->experts_per_token);
  }
  return parameter_count(model) - moe_layers * idle;
}

}  // namespace zeroplan
