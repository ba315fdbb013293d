#pragma once
// A multi-token-prediction module as Megatron-Core trains it: a block before its layer, and one
// after. It shares embedding and output layer with the model.

#include "cost_model/problem.hpp"
#include "cost_model/program/block.hpp"

namespace zeroplan {

/// Embeds the next token, norms it and the hidden state, and projects both to one hidden state,
/// which the module's layer reads. Source: Megatron-LM core/transformer/multi_token_prediction.py.
Block megatron_mtp_input(const Problem& problem);

/// Final norm, output layer and loss of the module's own depth; hands the model's hidden state on
/// to the next module or the head. The logits of every depth stay until the backward pass.
Block megatron_mtp_head(const Problem& problem);

}  // namespace zeroplan
