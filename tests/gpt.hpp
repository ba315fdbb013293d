#pragma once
// GPT as the Megatron papers have it, of any size.

#include "cost_model/question/model.hpp"

namespace zeroplan::tests {

/// Learned positions, biases, a plain MLP four times as wide, tied embeddings.
struct GptSize {
  std::int64_t layers, hidden, heads, sequence, vocab;
};

inline ModelSpec gpt(const GptSize& size) {
  ModelSpec model{
      .name = "gpt", .layers = size.layers, .hidden_size = size.hidden, .vocab_size = size.vocab};
  model.learned_positions = model.max_position_embeddings = size.sequence;
  model.attention = {.heads = size.heads,
                     .kv_heads = size.heads,
                     .head_dim = size.hidden / size.heads,
                     .qkv_bias = true,
                     .output_bias = true};
  model.mlp = {.intermediate_size = 4 * size.hidden, .bias = true};
  model.norm = Norm::layer;
  model.tied_embeddings = true;
  return model;
}

}  // namespace zeroplan::tests
