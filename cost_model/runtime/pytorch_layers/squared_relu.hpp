#pragma once
// ReLU and its square, an operator each: Transformers' relu2 (activations.py
// ReLUSquaredActivation, huggingface/transformers v5.24.0).

#include "cost_model/runtime/pytorch_layers/layer.hpp"

namespace zeroplan {

/// Whether the MLP's activation is written so.
bool squares_relu(const EagerShape& s);

/// Writes the square of what is positive of `input`, of so many bytes, which nothing reads again.
/// Gives the result as the linear reads it.
Tensor write_squared_relu(
    EagerPass& pass, const EagerShape& s, Bytes bytes, Tensor input, EagerSquaredRelu& t);

/// Frees the gradient of the result and what was kept; gives the gradient of the input.
Tensor write_squared_relu_backward(BlockWriter& w,
                                   const EagerShape& s,
                                   Bytes bytes,
                                   const EagerSquaredRelu& t,
                                   Tensor output_gradient);

}  // namespace zeroplan
