#pragma once
// Private to the attention half of a Megatron layer: queries, keys and values that one projection
// makes, with the gate of its output where a model has one.
// Sources: Megatron-LM @d98e8a64dd core/transformer/attention.py get_query_key_value_tensors,
// _apply_output_gate.

#include "cost_model/runtime/megatron/layer.hpp"

namespace zeroplan {

/// Writes them into `t`; tensors of keys or values alone go to `grouped`. A gate is copied out of
/// the projection where that holds several groups of heads; else it is a view (PyTorch's reshape).
/// Gives what variables hold a view of until attention returns, or none.
Tensor write_grouped_inputs(BlockWriter& w,
                            const MegatronShape& s,
                            AttentionTensors& t,
                            TensorList& grouped);

/// The gradient of the gate, whose sigmoid weighs what the kernel gave: its time is the kernel's.
/// `output`, the gradient of the product, becomes that of the kernel's output.
Tensor write_gate_backward(BlockWriter& w, const MegatronShape& s, Tensor gate, Tensor& output);

/// Bytes of the gradient of a rank's heads together, as the projection made them.
Bytes mixed_gradient(const MegatronShape& s);
/// Features that the rank itself projects, of a token.
std::int64_t projected_width(const MegatronShape& s);
/// The gradient of what the rank itself projected, from the one before, which is freed.
Tensor write_projection_backward(BlockWriter& w, const MegatronShape& s, Tensor mixed);

}  // namespace zeroplan
