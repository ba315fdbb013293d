#pragma once
// Which bytes move the kernels that PyTorch runs between the products of Transformer Engine's
// grouped experts?

#include <vector>

#include "cost_model/kernel/layer_traffic.hpp"

namespace zeroplan {

/// Bounds of both branches of a gated activation, which are put together again. `branch`: bytes of
/// one of them. Source: Megatron-LM @d98e8a64dd core/fusions/fused_bias_geglu.py
/// weighted_bias_quick_geglu_impl.
Traffic clamp_traffic(Bytes branch);

/// What the biases of the experts of one layer add to `out`, with their gradients. Assumes a model
/// with experts. Source: Megatron-LM @d98e8a64dd core/transformer/moe/experts.py
/// TEGroupedMLP._apply_bias; core/distributed/distributed_data_parallel.py
/// _make_backward_post_hook.
void add_expert_biases(std::vector<Traffic>& out, const Problem& problem);

}  // namespace zeroplan
