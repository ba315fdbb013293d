#pragma once
// Every weight tensor of a model, named, with its shape and how tensor parallelism cuts it.
// Parameter counts, model states, padding and gradient buffers are all sums over this one list.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cost_model/question/model.hpp"
#include "cost_model/rank/layer_part.hpp"

namespace zeroplan {

/// How tensor parallelism cuts a weight of shape (rows = output features, columns = input
/// features).
enum class Split {
  replicated,  // every rank holds it whole: norms, routers, latent down-projections
  rows,        // column-parallel linear: output features are divided
  columns,     // row-parallel linear: input features are divided
  vocabulary,  // rows are padded to the runtime's unit, then divided
};

struct Weight {
  std::string_view name;  // as in a checkpoint, e.g. "q_proj"
  std::string_view
      module;  // the linear that runtimes with fused projections make of it, e.g. "qkv"
  std::int64_t rows = 0;
  std::int64_t columns = 1;  // 1: a vector
  Split split = Split::replicated;
  std::int64_t copies = 1;  // the experts of one layer
  bool expert = false;      // routed: lives on the expert grid (ep x etp), not on tp
  bool wide = false;        // of a layer in 16 bits, whatever the others are

  constexpr std::int64_t elements() const { return rows * columns * copies; }
};

/// The weights of one decoder layer, or of a part of it.
std::vector<Weight> layer_weights(const ModelSpec& model,
                                  LayerKind kind,
                                  LayerPart part = LayerPart::whole);

/// Word embedding, learned positions, embedding norm, and the projection up to hidden_size if any.
std::vector<Weight> embedding_weights(const ModelSpec& model);

/// Final norm, the projection down to embedding_size if any, and the untied output head.
std::vector<Weight> head_weights(const ModelSpec& model);

/// What a multi-token-prediction module adds to a model whose embedding and head it shares: a layer
/// of the last kind, the 2h-to-h projection with its two norms, and a final norm. Source:
/// Megatron-LM core/transformer/multi_token_prediction.py.
std::vector<Weight> mtp_module_weights(const ModelSpec& model);

/// Of these what is in none of its layers.
std::vector<Weight> mtp_end_weights(const ModelSpec& model);

/// One multi-token-prediction module as checkpoints store it: a layer of the last kind, the
/// 2h-to-h projection with its two norms, and its own embedding, head and final norm.
/// Source: DeepSeek-V3 report, section 2.2; reproduces the hub totals of DeepSeek-V3 and GLM-4.5.
std::vector<Weight> mtp_weights(const ModelSpec& model);

std::int64_t elements(std::span<const Weight> weights);

/// Parameters of the decoder with its embeddings, each tied tensor once, MTP modules not counted.
std::int64_t parameter_count(const ModelSpec& model);

/// Parameters of all MTP modules; 0 without any.
std::int64_t mtp_parameter_count(const ModelSpec& model);

/// Parameters one token uses: as parameter_count, with experts_per_token experts in each MoE layer.
std::int64_t active_parameter_count(const ModelSpec& model);

}  // namespace zeroplan
