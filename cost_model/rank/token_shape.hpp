#pragma once
// Widths of one token on one rank, what every activation is a multiple of, and how many tokens
// reach its experts.

#include <cstdint>

#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// Widths in elements unless said. Tensor parallelism divides heads and features; sequence
/// parallelism also divides the norm regions, over the tokens.
struct TokenShape {
  std::int64_t element;  // bytes of an activation
  std::int64_t
      norm_rows;  // ranks that share the norm regions: tp with sequence parallelism, else 1
  std::int64_t hidden;
  std::int64_t query;
  std::int64_t key_value;  // keys or values alone; with MLA keys
  std::int64_t output;     // of attention, before its projection; with MLA also values
  std::int64_t heads;
  std::int64_t mlp;     // intermediate features of a dense layer
  std::int64_t routed;  // features that go to an expert and come back; without experts hidden
};

TokenShape token_shape(const Problem& problem);

/// Linear attention with the heads that a rank has of all tokens of its samples, which tensor and
/// context parallelism both divide; assumes a model with it. Source: Megatron-LM @d98e8a64dd
/// core/ssm/gated_delta_net/common.py.
LinearAttentionSpec local_linear_attention(const Problem& problem);

/// A state space with the heads and groups that a rank has of all tokens of its samples; assumes a
/// model with it. Ranks of one group of heads have its state each. Source: Megatron-LM @d98e8a64dd
/// core/ssm/mamba_context_parallel.py.
StateSpaceSpec local_state_space(const Problem& problem);

/// Copies of tokens on one rank on their way through routed experts, with balanced routing.
struct RoutedTokens {
  std::int64_t local = 0;     // before dispatch; sequence parallelism divides them
  std::int64_t sent = 0;      // one an expert chosen, or one for each (repeats_tokens)
  std::int64_t received = 0;  // what the rank's experts work on
};

/// Whether queries and keys pass norms of their own. Those without weights are described where
/// Transformers' class runs them.
bool normalises_heads(const Problem& problem);

/// Which norms of the residual's width a layer has: before attention, before the MLP one of its
/// own, and one after each half. A model's norms stand after alone (OLMo 2) where Transformers'
/// class runs them; layers of other code have them before.
struct LayerNorms {
  bool input = true;
  bool pre_mlp = true;
  bool after = false;

  /// Whether the MLP reads what attention's norm gave.
  bool shared() const { return input && !pre_mlp; }
};
LayerNorms layer_norms(const Problem& problem);

/// Whether each expert works on all tokens, whichever were sent to it, as Transformers' class of
/// Llama 4 has it. Source: huggingface/transformers v5.24.0 models/llama4/modeling_llama4.py
/// Llama4TextMoe.
bool repeats_tokens(const Problem& problem);

/// The copies on one rank; assumes a model with experts. Source: Megatron-Core
/// core/transformer/moe/token_dispatcher.py.
RoutedTokens routed_tokens(const Problem& problem);

/// The places, of so many that hold equally many neighbouring experts, that a token's choices reach
/// on average: n (1 - (1 - 1/n)^k) for k independent choices. Where a token chooses groups of
/// experts first (DeepSeek-V3, section 2.1.2, node-limited routing), n counts the places of those
/// alone.
double reached_places(std::int64_t places, const MoeSpec& moe);

/// The copies that a rank receives where a token has one a rank of the expert group that it
/// reaches: what the flex dispatcher keeps apart before it orders them by expert.
std::int64_t received_once(const Problem& problem);

}  // namespace zeroplan
