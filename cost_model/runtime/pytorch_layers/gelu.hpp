#pragma once
// GELU by its approximation, where code spells it out: 0.5 x (1 + tanh(c (x + 0.044715 x^3))).

#include "cost_model/runtime/pytorch_layers/layer.hpp"

namespace zeroplan {

/// Whether GELU is written out, since no kernel does it at once.
bool spells_gelu(const EagerShape& s);

/// Writes GELU of `input` bytes. Gives the result as the operators leave it.
Tensor write_gelu(EagerPass& pass, const EagerShape& s, Bytes input, EagerGelu& t);

/// Frees the gradient of GELU's output and what GELU kept; gives the gradient of its input.
Tensor write_gelu_backward(
    BlockWriter& w, const EagerShape& s, Bytes input, const EagerGelu& t, Tensor output_gradient);

}  // namespace zeroplan
