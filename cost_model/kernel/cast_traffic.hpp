#pragma once
// Which bytes move the casts of what products of 8 and 4 bits read?

#include <vector>

#include "cost_model/kernel/layer_traffic.hpp"

namespace zeroplan {

/// Adds to `out` the casts of each product's input and of its output's gradient in one layer; where
/// attention's products are of 8 bits, of queries, keys, values, and its output's gradient. Nothing
/// in 16 and 32 bits.
void add_layer_casts(std::vector<Traffic>& out,
                     const Problem& problem,
                     LayerKind kind,
                     LayerPart part);

/// Adds to `out` the casts of the output layer, where its products are of 8 bits.
void add_head_casts(std::vector<Traffic>& out, const Problem& problem);

}  // namespace zeroplan
