#pragma once
// What linear attention by a gated delta rule computes and moves.

#include "cost_model/kernel/layer_traffic.hpp"

namespace zeroplan {

/// Tokens of a chunk, within which the rule is solved at once (flash-linear-attention 0.6.0
/// fla/ops/gated_delta_rule/chunk.py).
inline constexpr std::int64_t delta_rule_chunk = 64;

/// FLOPs of a token's forward pass beside the linears, as throughput is counted: the convolution,
/// and four products with each head's state (Megatron-LM @d98e8a64dd training/training.py
/// num_floating_point_operations, linear_self_attn_term, where keys are as wide as values).
double delta_rule_flops(const LinearAttentionSpec& attention);

/// Who runs what stands between the linears, and what it copies.
struct DeltaRuleHabits {
  bool spells_out = false;       // as Transformers does; else compiled as Megatron-Core's
  bool exchanges_heads = false;  // ranks of context parallelism order what they send and receive
  bool turns_samples = false;    // several of them stand side by side in the residual
};

/// Appends what runs between the linears, for the heads and `tokens` that a rank has: copies and
/// convolution, the kernels of flash-linear-attention, which the bytes between them bound, and the
/// norm of each head's output with the gate.
void add_linear_attention(std::vector<Traffic>& out,
                          const LinearAttentionSpec& attention,
                          std::int64_t tokens,
                          const DeltaRuleHabits& habits);

}  // namespace zeroplan
