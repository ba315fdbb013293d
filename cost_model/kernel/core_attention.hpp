#pragma once
// Which core attention a rank computes.

#include <optional>

#include "cost_model/kernel/attention.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// Core attention of one micro-batch on one rank: heads divided by tp, queries by cp, against all
/// keys; causal work is balanced over the cp ranks.
AttentionShape core_attention(const Problem& problem);

/// That of the model's windowed layers; nothing where the window holds the whole sequence or the
/// runtime's kernel computes what lies outside it too.
std::optional<AttentionShape> windowed_attention(const Problem& problem);

}  // namespace zeroplan
