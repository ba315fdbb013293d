#pragma once
// nanotron's linears over tensor parallelism, and the norms before them.
// Source: huggingface/nanotron @67c5ebb6 src/nanotron/parallel/tensor_parallel/functional.py.

#include "cost_model/program/block.hpp"
#include "cost_model/program/layer_shape.hpp"

namespace zeroplan {

/// A row-parallel linear's output, whole before its sum is scattered.
Tensor write_row_linear(BlockWriter& w, const LayerShape& s, std::string_view name);

/// What a linear or its gradients need of all tokens goes into a buffer that stays.
void write_gather(BlockWriter& w, const LayerShape& s);

/// What a column-parallel linear reads: `kept` for its weight's gradient; `argument`, which its
/// caller's variable holds as long as the half of the layer runs, where that is another tensor.
struct ColumnInput {
  Tensor kept, argument = BlockWriter::none;
};
/// Its input is the saved `norm`, gathered into that buffer; or, where tp_recompute_allgather is
/// off, into a tensor that is kept instead.
ColumnInput write_column_input(BlockWriter& w, const LayerShape& s, Tensor norm);

/// From the gradient of a column-parallel linear's output to that of its input; frees the first,
/// and what the linear kept.
Tensor write_input_gradient(BlockWriter& w,
                            const LayerShape& s,
                            Tensor output_gradient,
                            Tensor kept);

/// From there back through a fused norm, whose result is added to the residual's gradient in place.
void write_fused_norm_backward(BlockWriter& w,
                               const LayerShape& s,
                               Tensor output_gradient,
                               Tensor statistics);

}  // namespace zeroplan
