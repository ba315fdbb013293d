#pragma once
// What of Megatron-Core's layers waits on the host for the backward pass.

#include "cost_model/program/block.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// Layers of the model, from the first one, whose saved tensors go to the host.
std::int64_t offloaded_layers(const Problem& problem);

/// The block with all that its forward pass saves, its input included, on the host from the end of
/// that pass to the begin of its backward pass (Megatron-LM @d98e8a64dd
/// core/transformer/transformer_block.py get_cpu_offload_context; TransformerEngine
/// pytorch/cpu_offload.py). The one or two layers on their way there and back are not counted.
Block with_saved_on_host(Block block);

/// The bytes that are there.
Bytes saved_bytes(const Block& block);

}  // namespace zeroplan
