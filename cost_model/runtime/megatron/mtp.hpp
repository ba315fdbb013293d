#pragma once
// What a multi-token-prediction module of Megatron-Core does before its layer. After it comes
// megatron_mtp_head; embedding and output layer are the model's.

#include "cost_model/program/block.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// What the backward pass does with a module's gradient of the embedding's table. Autograd sums
/// those of all that read the table before any of them reaches the main gradient (pytorch
/// torch/csrc/autograd/input_buffer.cpp), so that the first waits for the last.
enum class TableGradient {
  alone,    // no other reads the table here, or others wait: it goes at once
  waits,    // it is the first
  gathers,  // it is the last, and takes the one that waits
};

/// Of module `i` of those that a rank trains, whose decoder's embedding is on that rank where the
/// pipeline has one stage.
TableGradient table_gradient_of_module(const Problem& problem, std::int64_t i);

/// Whether the embedding takes a gradient that waits for its own.
bool embedding_gathers(const Problem& problem);

/// The gradient that waits.
inline constexpr Carried waiting_table_gradient{"embedding table gradient of MTP modules",
                                                Category::temporaries};

/// Embeds the next token, norms it and the hidden state, and projects both to one hidden state,
/// which the module's layer reads. Source: Megatron-LM core/transformer/multi_token_prediction.py.
Block megatron_mtp_input(const Problem& problem, TableGradient table = TableGradient::alone);

}  // namespace zeroplan
