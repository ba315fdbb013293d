// How does the model that a file builds differ from the one that was asked for? Front door:
// model_differences.
#include "presets/configuration/model_differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace zeroplan {
namespace {

class Differences {
 public:
  void add(bool asked, bool built, std::string_view what) {
    if (asked != built) list_.push_back(fmt::format("{} {}", built ? "a" : "no", what));
  }

  void add(std::int64_t asked, std::int64_t built, std::string_view what) {
    if (asked != built) list_.push_back(fmt::format("{} {}, not {}", built, what, asked));
  }

  std::vector<std::string> take() { return std::move(list_); }

 private:
  std::vector<std::string> list_;
};

// As far as whoever builds it says: Megatron-Core's has one projection, whatever a checkpoint's
// class has.
std::optional<LinearAttentionSpec> linear_attention_of(const ModelSpec& model) {
  std::optional<LinearAttentionSpec> spec = model.linear_attention;
  if (spec) spec->joined_projections = false;
  return spec;
}

void add_attention(const AttentionSpec& asked, const AttentionSpec& built, Differences& out) {
  out.add(asked.heads, built.heads, "attention heads");
  out.add(asked.kv_heads, built.kv_heads, "heads of keys and values");
  out.add(asked.head_dim, built.head_dim, "values a head");
  out.add(asked.qkv_bias, built.qkv_bias, "bias of queries, keys and values");
  out.add(asked.output_bias, built.output_bias, "bias of the attention's output");
  out.add(asked.qk_norm, built.qk_norm, "norm of queries and keys");
  out.add(asked.joint_qk_norm, built.joint_qk_norm, "norm of all queries at once");
  out.add(asked.sinks, built.sinks, "sink a head");
  out.add(asked.output_gate, built.output_gate, "gate of the attention's output");
  out.add(asked.sliding_window, built.sliding_window, "keys in a window");
  out.add(asked.windowed_layers, built.windowed_layers, "layers with a window");
  out.add(asked.yarn, built.yarn, "YaRN rotation");
  const bool latents_differ = asked.mla && built.mla && !(*asked.mla == *built.mla);
  if (latents_differ || asked.mla.has_value() != built.mla.has_value()) {
    out.add(true, false, "such latents of attention");
  }
}

void add_experts(const MoeSpec& asked, const MoeSpec& built, Differences& out) {
  out.add(asked.experts, built.experts, "experts");
  out.add(asked.experts_per_token, built.experts_per_token, "experts a token");
  out.add(asked.router_groups, built.router_groups, "groups of experts");
  out.add(asked.groups_per_token, built.groups_per_token, "groups of experts a token");
  out.add(asked.intermediate_size, built.intermediate_size, "values inside an expert");
  out.add(asked.shared_intermediate_size, built.shared_intermediate_size,
          "values inside shared experts");
  out.add(asked.latent_size, built.latent_size, "values of what experts read");
  out.add(asked.gated, built.gated, "gate of the experts");
  out.add(asked.expert_bias, built.expert_bias, "bias of the experts");
  out.add(asked.clamped, built.clamped, "bound of the gated activation");
  out.add(asked.router_bias, built.router_bias, "bias of the router");
  out.add(asked.shared_expert_gate, built.shared_expert_gate, "gate of shared experts");
}

bool has_dense_layers(const ModelSpec& model) {
  return std::ranges::any_of(all_layer_kinds, [&](LayerKind kind) {
    return has_feed_forward(kind) && !has_experts(kind) && has_kind(model, kind);
  });
}

// But for the chunk, which is the kernels' and not the model's.
std::optional<StateSpaceSpec> state_space_of(const ModelSpec& model) {
  std::optional<StateSpaceSpec> spec = model.state_space;
  if (spec) spec->chunk = 0;
  return spec;
}

bool kinds_differ(const ModelSpec& asked, const ModelSpec& built) {
  for (std::int64_t layer = 0; layer < std::min(asked.layers, built.layers); ++layer) {
    if (narrow_kind(kind_of(asked, layer)) != narrow_kind(kind_of(built, layer))) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> model_differences(const ModelSpec& asked, const ModelSpec& built) {
  Differences out;
  out.add(asked.layers, built.layers, "layers");
  out.add(asked.hidden_size, built.hidden_size, "values of a hidden state");
  out.add(asked.vocab_size, built.vocab_size, "words");
  add_attention(asked.attention, built.attention, out);
  if (asked.moe && built.moe) {
    add_experts(*asked.moe, *built.moe, out);
  } else {
    out.add(asked.moe.has_value(), built.moe.has_value(), "mixture of experts");
  }
  if (asked.moe.has_value() == built.moe.has_value()) {
    out.add(true, !kinds_differ(asked, built), "same order of layers of each kind");
  }
  out.add(true, linear_attention_of(asked) == linear_attention_of(built), "such linear attention");
  out.add(true, state_space_of(asked) == state_space_of(built), "such a state space");
  if (has_dense_layers(asked)) {
    out.add(asked.mlp.intermediate_size, built.mlp.intermediate_size, "values inside the MLP");
    out.add(asked.mlp.gated, built.mlp.gated, "gate of the MLP");
    out.add(asked.mlp.squared_relu, built.mlp.squared_relu, "squared ReLU");
    out.add(asked.mlp.bias, built.mlp.bias, "bias of the MLP");
  }
  out.add(asked.norm == Norm::rms, built.norm == Norm::rms, "RMSNorm");
  out.add(has_norm_bias(asked), has_norm_bias(built), "bias of the norms");
  out.add(asked.norms_per_layer, built.norms_per_layer, "norms a layer");
  out.add(asked.norms_after, built.norms_after, "norms after each half");
  out.add(asked.final_norm, built.final_norm, "norm after the layers");
  out.add(asked.embedding_norm, built.embedding_norm, "norm of the embedding");
  out.add(asked.parallel_residual, built.parallel_residual, "parallel attention and MLP");
  out.add(asked.learned_positions, built.learned_positions, "learned positions");
  out.add(asked.embedding_size, built.embedding_size, "values of a narrower embedding");
  out.add(asked.tied_embeddings, built.tied_embeddings, "head tied to the embedding");
  out.add(asked.head_bias, built.head_bias, "bias of the head");
  return out.take();
}

}  // namespace zeroplan
