#pragma once
// Sizes of the tensors of one layer on one rank, for one micro-batch.

#include "cost_model/question/collective.hpp"
#include "cost_model/question/problem.hpp"
#include "cost_model/question/units.hpp"
#include "cost_model/rank/token_shape.hpp"

namespace zeroplan {

struct LayerShape {
  const Problem& problem;
  TokenShape token;
  std::int64_t tokens;  // T = s x b / cp

  bool sequence_parallel() const { return token.norm_rows > 1; }

  /// Bytes of `width` elements a token.
  Bytes features(std::int64_t width) const { return Bytes{token.element * width * tokens}; }
  /// Bytes of so many a token, where sequence parallelism divides the tokens.
  Bytes rows(std::int64_t bytes_a_token) const {
    return Bytes{ceil_div(bytes_a_token * tokens, token.norm_rows)};
  }
  /// The residual stream and whatever has its shape: x0 = 2 h k T.
  Bytes residual() const { return rows(token.element * token.hidden); }
  /// The residual stream, gathered over sequence parallelism; nothing where it is not divided.
  Bytes gathered() const { return sequence_parallel() ? features(token.hidden) : Bytes{}; }
  /// The hidden state, of which each rank of tensor parallelism has a part of the sum; nothing
  /// without.
  Bytes parts() const { return problem.layout.tp > 1 ? features(token.hidden) : Bytes{}; }
  /// The collective that sums up the parts of the hidden state.
  Collective sums() const {
    return sequence_parallel() ? Collective::reduce_scatter : Collective::all_reduce;
  }
  /// Its norms before and after its halves.
  LayerNorms norms() const { return layer_norms(problem); }
  /// fp32 statistics of one norm: reciprocal deviation, and mean unless RMS.
  Bytes norm_statistics() const { return rows(problem.model.norm == Norm::layer ? 8 : 4); }
};

inline LayerShape layer_shape(const Problem& problem) {
  return {problem, token_shape(problem), local_tokens(problem)};
}

}  // namespace zeroplan
