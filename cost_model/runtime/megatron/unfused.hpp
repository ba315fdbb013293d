#pragma once
// Attention of a Megatron layer that is not fused: its scores are tensors.
// Sources: TransformerEngine @d0067d0da pytorch/attention/dot_product_attention/backends.py;
// Megatron-LM core/transformer/dot_product_attention.py.

#include "cost_model/program/block.hpp"
#include "cost_model/runtime/megatron/shape.hpp"

namespace zeroplan {

inline bool unfused(const MegatronShape& s) {
  return s.problem.training.attention == AttentionKernel::unfused;
}
/// Whether keys and values are there for every query head, which this attention multiplies.
inline bool repeats_keys(const MegatronShape& s) {
  return unfused(s) && s.token.key_value < s.token.query;
}
inline bool recomputes_scores(const MegatronShape& s) {
  return unfused(s) && s.drops(RecomputeModule::core_attn);
}

/// The matrix of scores, or of what softmax makes of them, in the compute format.
Bytes narrow_scores(const MegatronShape& s);

/// What it makes; core_attn recompute drops it.
struct UnfusedKernel {
  TensorList repeated;  // keys and values
  TensorList scores;    // results of the softmax

  void free(BlockWriter& w) const {
    w.free(repeated);
    w.free(scores);
  }
};
UnfusedKernel write_unfused_kernel(BlockWriter& w, const MegatronShape& s);

/// From the gradient of the softmax to that of the scores, beside what the softmax kept, which
/// goes.
Tensor write_scores_backward(BlockWriter& w,
                             const MegatronShape& s,
                             Tensor softmax,
                             const TensorList& scores);

}  // namespace zeroplan
