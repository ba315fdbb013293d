#pragma once
// What the kernels of a gated delta rule allocate, whoever calls them.
// Source: flash-linear-attention 0.5.1 and 0.6.0 fla/ops/gated_delta_rule/chunk.py.

#include "cost_model/program/block.hpp"
#include "cost_model/question/model.hpp"

namespace zeroplan {

/// Bytes on one rank for one micro-batch.
struct DeltaChunks {
  Bytes keys;           // as they are given
  Bytes expanded_keys;  // of each value head
  Bytes values;
  Bytes rates;       // one a token and value head, as wide as an activation
  Bytes wide_rates;  // the same in fp32
  Bytes inverses;    // of each chunk and head, by which its tokens are solved
  Bytes states;      // that each chunk begins with
};

/// Of so many tokens in so many samples; `attention`: the heads that the kernels are given.
DeltaChunks delta_chunks(const LinearAttentionSpec& attention,
                         std::int64_t element,
                         std::int64_t tokens,
                         std::int64_t samples);

/// What the kernels allocate beside what they keep, the decay summed by chunk and the inverses:
/// gives their output, of this category.
Tensor write_delta_chunks(BlockWriter& w, const DeltaChunks& z, Category output);

/// Gradients of queries, keys and values, and of both rates.
struct DeltaChunkGradients {
  Tensor query, key, value, rates;
};

/// What the forward pass did not keep is made again; gradients of keys are each value head's, and
/// summed.
DeltaChunkGradients write_delta_chunks_backward(BlockWriter& w, const DeltaChunks& z);

}  // namespace zeroplan
