#pragma once
// The first and the last block of the model as Megatron-Core runs them.

#include "cost_model/question/problem.hpp"
#include "cost_model/runtime/megatron/layer.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// Bytes of a token id as PyTorch keeps it: 64 bits.
inline constexpr std::int64_t token_id_bytes = 8;

/// Word embedding with its dropout. Its backward pass makes one dense gradient of the table.
/// `of_head`: what autograd adds to that of an output layer with the same table, on this rank;
/// `of_modules`: whether it adds one of modules that predict further tokens (mtp.hpp).
/// Source: Megatron-LM core/models/common/embeddings, core/tensor_parallel/layers.py
/// (zero_out_wgrad).
Block megatron_embedding(const Problem& problem,
                         HandedGradient of_head = HandedGradient::nothing,
                         bool of_modules = false);

/// Final norm, output layer and cross entropy, by the loss kernel that is set. `E` logits on a
/// rank: without fusion 6 bytes each (4 in fp32), compiled 10, Transformer Engine's 2 up to
/// release 2.17 and 6 after. Sources: Megatron-LM core/tensor_parallel/cross_entropy.py,
/// core/fusions/fused_cross_entropy.py; TransformerEngine pytorch/triton/cross_entropy.py (in place
/// before 01bbe3eea, release 2.18). `to_embedding`: a tensor that it hands on waits for the
/// embedding's gradient (pytorch torch/csrc/autograd/input_buffer.cpp).
Block megatron_head(const Problem& problem, HandedGradient to_embedding = HandedGradient::nothing);

/// Final norm, output layer and cross entropy for a multi-token-prediction module's own depth: it
/// hands the hidden state on to the next module or the model's head. The logits of every depth stay
/// until the backward pass.
Block megatron_mtp_head(const Problem& problem);

/// A chunk without layers or ends, which clones what it passes on: the schedule frees the output
/// that it has sent. Autograd gives the received gradient back as it is, which the schedule still
/// holds, so its leaf gets a copy. Source: Megatron-LM core/transformer/transformer_block.py
/// forward; pytorch torch/csrc/autograd/functions/accumulate_grad.h.
Block megatron_passed_on(const Problem& problem);

/// Rows and columns of the word embedding and the output layer on one rank.
LocalWeight word_embedding(const Problem& problem);

}  // namespace zeroplan
