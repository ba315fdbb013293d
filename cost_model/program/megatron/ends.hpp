#pragma once
// The first and the last block of the model as Megatron-Core runs them.

#include "cost_model/problem.hpp"
#include "cost_model/program/block.hpp"

namespace zeroplan {

/// Word embedding with its dropout. Its backward pass makes one dense gradient of the table.
/// Source: Megatron-LM core/models/common/embeddings, core/tensor_parallel/layers.py.
Block megatron_embedding(const Problem& problem);

/// Final norm, output layer and cross entropy, by the loss kernel that is set. `E` logits on a
/// rank: without fusion 6 bytes each, compiled 10, Transformer Engine's 2 up to release 2.17 and 6
/// after. Sources: Megatron-LM core/tensor_parallel/cross_entropy.py,
/// core/fusions/fused_cross_entropy.py; TransformerEngine pytorch/triton/cross_entropy.py (in place
/// before 01bbe3eea, release 2.18).
Block megatron_head(const Problem& problem);

}  // namespace zeroplan
