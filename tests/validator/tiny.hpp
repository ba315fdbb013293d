#pragma once
// Models that train in milliseconds, of the two styles the engine knows.

#include "tests/draws.hpp"
#include "tests/specs.hpp"

namespace zeroplan::tests {

/// Grouped queries, rotary positions, gated MLP, RMS norm, and a vocabulary that nothing divides.
inline ModelSpec tiny_llama() {
  return {.name = "tiny-llama",
          .family = "llama",
          .layers = 3,
          .hidden_size = 32,
          .vocab_size = 101,
          .max_position_embeddings = 64,
          .attention = {.heads = 4, .kv_heads = 2, .head_dim = 8},
          .mlp = {.intermediate_size = 48, .gated = true},
          .moe = {},
          .layer_kinds = {}};
}

/// Learned positions, layer norm, plain MLP, biases everywhere.
inline ModelSpec tiny_gpt() {
  ModelSpec model = tiny_llama();
  model.name = "tiny-gpt";
  model.family = "gpt2";
  model.attention = {
      .heads = 4, .kv_heads = 4, .head_dim = 8, .qkv_bias = true, .output_bias = true, .mla = {}};
  model.mlp = {.intermediate_size = 64, .gated = false, .bias = true};
  model.norm = Norm::layer;
  model.learned_positions = 64;
  return model;
}

/// The same whose head multiplies by the word embedding.
inline ModelSpec tied(ModelSpec model) {
  model.name += "-tied";
  model.tied_embeddings = true;
  return model;
}

/// The engine's settings, each alone, each pair, and many together, as far as they are legal with
/// this recompute, and with sequence parallelism where `split`; under sanitizers only together. The
/// bucket is smaller than a unit and divides none.
inline std::vector<ZeroplanSettings> engine_settings(Recompute recompute, bool split = false) {
  const std::vector<unsigned> together{13U, 15U, 17U};
  const std::vector<unsigned> each{1U,  2U,  4U,  8U,  3U,  5U,  9U, 6U,
                                   10U, 12U, 13U, 15U, 16U, 17U, 18U};
  std::vector<ZeroplanSettings> all;
  for (const unsigned bits : sanitized ? together : each) {
    const ZeroplanSettings set{.prefetch = (bits & 1U) != 0,
                               .partition_activations = (bits & 2U) != 0,
                               .reduce_bucket_size = (bits & 4U) != 0 ? 2000 : 0,
                               .contiguous_memory_optimization = (bits & 8U) != 0,
                               .overlap_comm = (bits & 16U) != 0};
    if (set.partition_activations && (split || recompute != Recompute::full)) continue;
    all.push_back(set);
  }
  return all;
}

/// One step of `micro_batches` micro-batches a rank, 16 tokens a sample.
inline Problem tiny_problem(const ModelSpec& model,
                            const Layout& layout,
                            std::int64_t micro_batches = 1) {
  Problem p = problem(Runtime::zeroplan, "llama3-8b", layout);
  p.model = model;
  p.training.sequence_length = 16;
  p.training.global_batch = layout.dp * layout.micro_batch * micro_batches;
  return p;
}

}  // namespace zeroplan::tests
