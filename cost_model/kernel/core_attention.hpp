#pragma once
// Which core attention a rank computes.

#include <optional>

#include "cost_model/kernel/attention.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// Core attention of one micro-batch on one rank: heads divided by tp, queries by cp, against all
/// keys; causal work is balanced over the cp ranks.
AttentionShape core_attention(const Problem& problem);

/// What a rank of a ring computes of the `whole` core attention with its own keys, and with those
/// of each other rank: half of its queries with all of them or all with half, as the causal mask
/// leaves (TransformerEngine pytorch/attention/dot_product_attention/context_parallel.py
/// AttnFuncWithCPAndKVP2P).
AttentionShape own_keys(const AttentionShape& whole);
AttentionShape keys_of_another(const AttentionShape& whole);

/// Core attention of the model's windowed layers; nothing where the window holds the whole sequence
/// or the runtime's kernel computes what lies outside it too.
std::optional<AttentionShape> windowed_attention(const Problem& problem);

}  // namespace zeroplan
