#pragma once
// Which layers, and which of embedding and head, each pipeline rank holds.

#include <cstdint>
#include <vector>

#include "cost_model/question/inputs.hpp"
#include "cost_model/question/problem.hpp"

namespace zeroplan {

/// The layers of a chunk; none, beside its neighbour's, where it holds an end of the model alone.
struct LayerRange {
  std::int64_t first = 0;
  std::int64_t last = 0;  // one past the end
  friend bool operator==(const LayerRange&, const LayerRange&) = default;
};

/// What one pipeline rank holds.
struct Stage {
  std::vector<LayerRange> chunks;  // one a virtual stage
  bool embedding = false;
  bool head = false;
  friend bool operator==(const Stage&, const Stage&) = default;
};

/// Whether chunk `i` of the stage begins with the embedding, or ends with the head: the ends of the
/// model are in its outermost chunks, of which those without layers lie outside their neighbours.
bool begins_model(const Stage& stage, std::size_t i);
bool ends_model(const Stage& stage, std::size_t i);

/// The chunks of a stage as stages of their own.
std::vector<Stage> chunks_of(const Stage& stage);

/// Layers of a stage, all chunks together.
std::int64_t layer_count(const Stage& stage);

/// Layers of a stage that are of this kind; and of each kind.
std::int64_t layer_count(const ModelSpec& model, const Stage& stage, LayerKind kind);
ByKind<std::int64_t> layers_by_kind(const ModelSpec& model, const Stage& stage);

/// Layers of a stage that have experts.
std::int64_t expert_layers(const Problem& problem, const Stage& stage);

/// What of a stage the states and the messages of its rank read: how many layers of which kind, and
/// which ends of the model.
using StageContent = Numbers<4>;
StageContent content_of(const ModelSpec& model, const Stage& stage);

/// Whether two ranges hold as many layers of the same kinds in the same order.
bool alike_layers(const ModelSpec& model, const LayerRange& a, const LayerRange& b);

/// Whether two stages hold as many layers of each kind in each chunk, and both or neither of
/// embedding and head: they need and take the same, but for their place in the schedule.
bool alike(const ModelSpec& model, const Stage& a, const Stage& b);

/// Most chunks that the layers can be divided into. A chunk holds a layer, but for Megatron-Core's
/// first and last where embedding and loss count as layers: these may hold such an end alone.
std::int64_t most_chunks(const ModelSpec& model, const RuntimeSpec& runtime);

/// `items` over `parts`, what does not divide going to the first parts.
std::vector<std::int64_t> front_loaded(std::int64_t items, std::int64_t parts);

/// The split, and the most chunks, of a runtime that splits layers evenly, at most one a chunk.
std::vector<std::int64_t> even_split(const Problem& problem);
std::int64_t one_layer_a_chunk(const ModelSpec& model, const RuntimeSpec& runtime);

/// Whether a runtime's split has chunks, by making it.
template <std::vector<std::int64_t> (*split)(const Problem&)>
bool has_chunks(const Problem& problem) {
  return !split(problem).empty();
}

/// Layers of each of the pp x vpp chunks, in model order, as the runtime splits them
/// (runtime/<name>/split.cpp). Empty when it cannot split so.
std::vector<std::int64_t> chunk_sizes(const Problem& problem);

/// Whether chunk_sizes has any chunks.
bool has_stages(const Problem& problem);

/// Each pipeline rank of the layout. Chunks go round the ranks, except ZB-V's, which come back
/// (rank r holds chunks r and 2p-1-r: Qi et al. 2023, section 6), and DualPipe's, whose ranks hold
/// the stages of both directions (DeepSeek-V3 report, section 3.2.1). Assumes a legal layout.
std::vector<Stage> stages(const Problem& problem);

}  // namespace zeroplan
