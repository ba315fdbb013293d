#pragma once
// Private to the attention half of a layer: rotation of queries and keys, and the kernel.

#include "cost_model/runtime/pytorch_layers/layer.hpp"

namespace zeroplan {

inline bool latent(const EagerShape& s) {
  return s.problem.model.attention.mla.has_value();
}

inline bool rotary(const EagerShape& s) {
  return turns_heads(s.problem.model);
}

// Keys and values have their own width until they are repeated.
inline bool repeats(const EagerShape& s) {
  return s.style.repeats_keys && !latent(s) && s.token.key_value < s.token.query;
}

inline Bytes query(const EagerShape& s) {
  return s.features(s.token.query);
}
inline Bytes keys(const EagerShape& s) {
  return s.features(s.token.key_value);
}
inline Bytes values(const EagerShape& s) {
  return s.features(latent(s) ? s.token.output : s.token.key_value);
}

/// Replaces queries and keys by what their positions turn them to.
void write_rotation(EagerPass& pass, const EagerShape& s, EagerKernel& t);
/// Replaces their gradients by those of what was turned, and frees the `table` that turned them.
void write_rotation_backward(BlockWriter& w,
                             const EagerShape& s,
                             Tensor table,
                             Tensor& query_gradient,
                             Tensor& key_gradient);

/// From queries, keys and values to the attention output, and all that `t` then holds.
void write_kernel(EagerPass& pass, const EagerShape& s, EagerKernel& t);

struct KernelGradients {
  Tensor query, key, value;
};
/// Gradients of what the kernel read; frees that of its output and all that `t` holds.
KernelGradients write_kernel_backward(BlockWriter& w,
                                      const EagerShape& s,
                                      const EagerKernel& t,
                                      Tensor output_gradient);

}  // namespace zeroplan
