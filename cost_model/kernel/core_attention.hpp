#pragma once
// Which core attention a rank computes.

#include "cost_model/kernel/attention.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// Core attention of one micro-batch on one rank: heads divided by tp, queries by cp, against all
/// keys; causal work is balanced over the cp ranks.
AttentionShape core_attention(const Problem& problem);

}  // namespace zeroplan
