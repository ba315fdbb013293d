#pragma once
// The blocks of a decoder in the arithmetic of the ZeRO paper: what a layer keeps, and what the
// ranks that divide it send each other.

#include "cost_model/program/block.hpp"
#include "cost_model/program/layer_shape.hpp"

namespace zeroplan {

/// With tensor parallelism as Narayanan et al. 2021, section 3.2, and with sequence parallelism as
/// Korthikanti et al. 2022, section 4.2.2; context parallelism by DeepSpeed-Ulysses (arXiv
/// 2309.14509); experts by two all-to-alls a direction.
Block paper_embedding(const LayerShape& shape);
Block paper_layer(const LayerShape& shape, LayerKind kind);
Block paper_head(const LayerShape& shape);

}  // namespace zeroplan
