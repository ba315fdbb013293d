#pragma once
// Private to the first half of a layer: the one that is a state space.

#include "cost_model/kernel/state_space.hpp"
#include "cost_model/runtime/pytorch_layers/layer.hpp"

namespace zeroplan {

/// From what the projection reads, t.input, to the half's result.
void write_state_space(EagerPass& pass, const EagerShape& s, EagerAttention& t);

/// Gives the gradient of what the projection reads; frees all that the half saved but for its norm.
Tensor write_state_space_backward(BlockWriter& w,
                                  const EagerShape& s,
                                  const EagerAttention& t,
                                  const OnGradient& on_gradient);

std::vector<Tensor> tensors_of(const EagerStateSpace& state_space);

}  // namespace zeroplan
