// Is the model small enough to count in 64 bits? Front door: check_size.
#include <fmt/format.h>

#include "presets/hf_import.hpp"

namespace zeroplan {
namespace {

constexpr double most_parameters = 1e15;  // a thousand times the largest model trained

double attention_matrices(const AttentionSpec& a, double h) {
  const auto heads = static_cast<double>(a.heads);
  if (!a.mla) {
    const auto dim = static_cast<double>(a.head_dim);
    const double gate = a.output_gate ? h * dim * heads : 0;
    return gate + 2 * h * dim * (heads + static_cast<double>(a.kv_heads));
  }
  const auto nope = static_cast<double>(a.mla->qk_nope_head_dim);
  const auto rope = static_cast<double>(a.mla->qk_rope_head_dim);
  const auto value = static_cast<double>(a.mla->v_head_dim);
  const auto q_rank = static_cast<double>(a.mla->q_lora_rank);
  const auto kv_rank = static_cast<double>(a.mla->kv_lora_rank);
  return heads * (nope + rope) * (q_rank > 0 ? q_rank : h) + heads * (nope + value) * kv_rank +
         heads * value * h + (q_rank + kv_rank + rope) * h;
}

// Of heads and widths of 16 and 31 bits.
double linear_attention_matrices(const LinearAttentionSpec& a, double h) {
  const auto keys = static_cast<double>(a.key_heads) * static_cast<double>(a.key_head_dim);
  const auto values = static_cast<double>(a.value_heads) * static_cast<double>(a.value_head_dim);
  const double mixed = 2 * keys + values;
  return h * (mixed + 2 * values + 2 * static_cast<double>(a.value_heads)) +
         mixed * static_cast<double>(a.convolution);
}

double state_space_matrices(const StateSpaceSpec& m, double h) {
  const double features = static_cast<double>(m.heads) * static_cast<double>(m.head_dim);
  const double mixed = features + 2 * static_cast<double>(m.groups) * static_cast<double>(m.state);
  return h * (2 * features + mixed + static_cast<double>(m.heads)) +
         mixed * static_cast<double>(m.convolution);
}

/// All matrices of the model in floating point, rounded up in meaning: every layer is taken to hold
/// both kinds of attention and of MLP. Norms and biases are less than any matrix of their layer.
double rough_parameters(const ModelSpec& model) {
  const auto h = static_cast<double>(model.hidden_size);
  double layer = attention_matrices(model.attention, h) +
                 3 * h * static_cast<double>(model.mlp.intermediate_size);
  if (model.linear_attention) layer += linear_attention_matrices(*model.linear_attention, h);
  if (model.state_space) layer += state_space_matrices(*model.state_space, h);
  if (model.moe) {
    const auto experts = static_cast<double>(model.moe->experts);
    const auto routed = static_cast<double>(routed_width(model));
    layer += 3 * (experts * routed * static_cast<double>(model.moe->intermediate_size) +
                  h * static_cast<double>(model.moe->shared_intermediate_size)) +
             h * (experts + 2 * routed);
  }
  const double ends = 2 * h * static_cast<double>(model.vocab_size) +
                      h * static_cast<double>(model.learned_positions) +
                      2 * h * static_cast<double>(model.embedding_size);
  const auto mtp = static_cast<double>(model.mtp_layers);
  return layer * (static_cast<double>(model.layers) + mtp) + ends * (1 + mtp) + mtp * 2 * h * h;
}

}  // namespace

void check_size(const JsonObject& config, const ModelSpec& model) {
  const double rough = rough_parameters(model);
  if (rough < most_parameters) return;
  config.fail(fmt::format("about {:.1e} parameters, fewer than {:.0e} are allowed", rough,
                          most_parameters));
}

}  // namespace zeroplan
