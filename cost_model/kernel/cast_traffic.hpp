#pragma once
// Which bytes move the casts of what products of 8 and 4 bits read?

#include <vector>

#include "cost_model/kernel/layer_traffic.hpp"

namespace zeroplan {

/// Whether a layer's products read casts: of 8 and 4 bits, or of 16 under autocast.
bool casts_operands(const Problem& problem);

/// Adds to `out` the casts of each product's input and of its output's gradient in one layer; where
/// attention's products are of 8 bits, of queries, keys, values, and its output's gradient. Under
/// autocast of what is fp32: weights, what linears read of the hidden state, and its gradients.
void add_layer_casts(std::vector<Traffic>& out,
                     const Problem& problem,
                     LayerKind kind,
                     LayerPart part);

/// Adds to `out` the casts of the output layer, where its products are of 8 bits.
void add_head_casts(std::vector<Traffic>& out, const Problem& problem);

}  // namespace zeroplan
