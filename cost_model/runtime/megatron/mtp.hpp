#pragma once
// What a multi-token-prediction module of Megatron-Core does before its layer. After it comes
// megatron_mtp_head; embedding and output layer are the model's.

#include "cost_model/program/block.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// Embeds the next token, norms it and the hidden state, and projects both to one hidden state,
/// which the module's layer reads. Source: Megatron-LM core/transformer/multi_token_prediction.py.
Block megatron_mtp_input(const Problem& problem);

}  // namespace zeroplan
