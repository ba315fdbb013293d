// Which part of the model is a rank's? Front door: shape_of.
#include "validator/model/shape.hpp"

namespace zeroplan::engine {

Shape shape_of(const Problem& problem, std::int64_t tp_rank) {
  const ModelSpec& m = problem.model;
  const std::int64_t tp = problem.layout.tp;
  const std::int64_t vocabulary_rows = (m.vocab_size + tp - 1) / tp;
  return {.hidden = m.hidden_size,
          .attention = {.sequence = problem.training.sequence_length,
                        .samples = problem.layout.micro_batch,
                        .heads = m.attention.heads / tp,
                        .kv_heads = m.attention.kv_heads / tp,
                        .head_dim = m.attention.head_dim},
          .mlp = m.mlp.intermediate_size / tp,
          .gated = m.mlp.gated,
          .vocabulary = {tp_rank * vocabulary_rows, vocabulary_rows, m.vocab_size},
          .positions = m.learned_positions,
          .layer_norm = m.norm == Norm::layer,
          .qkv_bias = m.attention.qkv_bias,
          .output_bias = m.attention.output_bias,
          .mlp_bias = m.mlp.bias,
          .head_bias = m.head_bias,
          .recompute = problem.layout.recompute == Recompute::full,
          .sequence_parallel = problem.layout.sequence_parallel,
          .tied = m.tied_embeddings,
          .tp_rank = tp_rank};
}

}  // namespace zeroplan::engine
