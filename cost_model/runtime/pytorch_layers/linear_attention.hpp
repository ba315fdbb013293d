#pragma once
// Private to the attention half of a layer: the one that is linear.

#include "cost_model/kernel/delta_rule.hpp"
#include "cost_model/runtime/pytorch_layers/layer.hpp"

namespace zeroplan {

/// Linears that read the norm's output.
inline std::int64_t linear_projections(const EagerShape& s) {
  return s.problem.model.linear_attention->joined_projections ? 2 : 4;
}

/// From what the projections read, t.input, to the half's result.
void write_linear_attention(EagerPass& pass, const EagerShape& s, EagerAttention& t);

/// Gives the gradient of what the projections read; frees all that the half saved but for its norm.
Tensor write_linear_attention_backward(BlockWriter& w,
                                       const EagerShape& s,
                                       const EagerAttention& t,
                                       const OnGradient& on_gradient);

std::vector<Tensor> tensors_of(const EagerDeltaRule& delta_rule);

}  // namespace zeroplan
