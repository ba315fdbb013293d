#pragma once
// How large everything is on one rank that runs the engine.

#include "cost_model/question/problem.hpp"
#include "validator/device/device.hpp"

namespace zeroplan::engine {

/// Widths after tensor parallelism has divided them, and one micro-batch.
struct Shape {
  std::int64_t hidden = 0;
  AttentionShape attention;
  std::int64_t mlp = 0;
  bool gated = false;
  VocabularyPart vocabulary;
  std::int64_t positions = 0;  // rows of a learned table; 0: rotary
  bool layer_norm = false;
  bool qkv_bias = false, output_bias = false, mlp_bias = false, head_bias = false;
  bool recompute = false;  // every layer, in the backward pass
  bool sequence_parallel = false;
  bool tied = false;  // the head multiplies by the word embedding
  std::int64_t tp_rank = 0;

  std::int64_t tokens() const { return attention.sequence * attention.samples; }
  std::int64_t up() const { return gated ? 2 * mlp : mlp; }
  std::int64_t statistics() const { return layer_norm ? 2 : 1; }  // of a norm, a row
};

/// Assumes a problem that is legal for the runtime `zeroplan`.
Shape shape_of(const Problem& problem, std::int64_t tp_rank);

}  // namespace zeroplan::engine
