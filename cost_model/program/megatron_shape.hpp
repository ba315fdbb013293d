#pragma once
// Sizes of the tensors of one Megatron-Core layer on one rank, for one micro-batch.

#include "cost_model/problem.hpp"
#include "cost_model/token_shape.hpp"
#include "cost_model/units.hpp"

namespace zeroplan {

struct MegatronShape {
  const Problem& problem;
  TokenShape token;
  std::int64_t tokens;  // T = s x b / cp

  const MegatronSettings& settings() const { return problem.runtime.megatron; }
  bool sequence_parallel() const { return token.norm_rows > 1; }

  /// `width` elements a token.
  Bytes features(std::int64_t width) const { return Bytes{token.element * width * tokens}; }
  /// The residual stream and whatever has its shape: x0 = 2 h k T.
  Bytes residual() const {
    return Bytes{ceil_div(features(token.hidden).count(), token.norm_rows)};
  }
  /// The same, gathered from the ranks of sequence parallelism; nothing where it is not divided.
  Bytes gathered() const { return sequence_parallel() ? features(token.hidden) : Bytes{}; }
  /// One-byte mask of hidden dropout.
  Bytes dropout_mask() const {
    return settings().hidden_dropout ? Bytes{ceil_div(token.hidden * tokens, token.norm_rows)}
                                     : Bytes{};
  }
  /// fp32 statistics of one norm: reciprocal deviation, and mean unless RMS.
  Bytes norm_statistics() const {
    return Bytes{ceil_div((problem.model.norm == Norm::layer ? 8 : 4) * tokens, token.norm_rows)};
  }
  /// A linear's saved input: in 8 bits where the GEMM reads it so.
  Bytes linear_input(Bytes in_16_bits) const {
    return problem.training.precision == Precision::fp8 ? Bytes{in_16_bits.count() / 2}
                                                        : in_16_bits;
  }
};

inline MegatronShape megatron_shape(const Problem& problem) {
  return {problem, token_shape(problem), local_tokens(problem)};
}

}  // namespace zeroplan
