// What does each pipeline rank hold? Front door: stages.
#include "cost_model/rank/stages.hpp"

#include <algorithm>
#include <tuple>

namespace zeroplan {

std::vector<std::int64_t> front_loaded(std::int64_t items, std::int64_t parts) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(parts), items / parts);
  for (std::int64_t i = 0; i < items % parts; ++i) ++sizes[static_cast<std::size_t>(i)];
  return sizes;
}

std::int64_t layer_count(const Stage& stage) {
  std::int64_t count = 0;
  for (const LayerRange& chunk : stage.chunks) count += chunk.last - chunk.first;
  return count;
}

std::int64_t layer_count(const ModelSpec& model, const Stage& stage, LayerKind kind) {
  std::int64_t count = 0;
  for (const LayerRange& chunk : stage.chunks) {
    count += layers_of_kind(model, chunk.first, chunk.last, kind);
  }
  return count;
}

ByKind<std::int64_t> layers_by_kind(const ModelSpec& model, const Stage& stage) {
  ByKind<std::int64_t> sum;
  if (model.layer_kinds.empty()) {
    sum[kind_of(model, 0)] = layer_count(stage);
    return sum;
  }
  for (const LayerRange& chunk : stage.chunks) {
    const ByKind<std::int64_t> own = layers_by_kind(model, chunk.first, chunk.last);
    for (const LayerKind kind : all_layer_kinds) sum[kind] += own[kind];
  }
  return sum;
}

std::int64_t expert_layers(const Problem& problem, const Stage& stage) {
  const ModelSpec& model = problem.model;
  std::int64_t sum = 0;
  if (const std::int64_t modules = held_mtp_modules(problem); stage.head && modules > 0) {
    sum += modules * std::ranges::count_if(kinds_of_mtp_module(model), has_experts);
  }
  for (const LayerRange& chunk : stage.chunks) {
    sum += layers_with_experts(model, chunk.first, chunk.last);
  }
  return sum;
}

StageContent content_of(const ModelSpec& model, const Stage& stage) {
  constexpr int bits = 15;  // of a number of layers, of four kinds in each number
  StageContent content{2 * static_cast<std::int64_t>(stage.embedding) +
                       static_cast<std::int64_t>(stage.head)};
  static_assert(all_layer_kinds.size() == 4 * content.size());
  std::size_t place = 0;
  for (const std::int64_t count : layers_by_kind(model, stage)) {
    std::int64_t& together = content[place++ / 4];
    together = together << bits | count;
  }
  return content;
}

bool alike_layers(const ModelSpec& model, const LayerRange& a, const LayerRange& b) {
  if (a.last - a.first != b.last - b.first) return false;
  if (model.layer_kinds.empty()) return true;
  for (std::int64_t i = 0; i < a.last - a.first; ++i) {
    if (kind_of(model, a.first + i) != kind_of(model, b.first + i)) return false;
  }
  return true;
}

bool alike(const ModelSpec& model, const Stage& a, const Stage& b) {
  const auto same = [&](const LayerRange& x, const LayerRange& y) {
    return alike_layers(model, x, y);
  };
  return a.embedding == b.embedding && a.head == b.head &&
         std::equal(a.chunks.begin(), a.chunks.end(), b.chunks.begin(), b.chunks.end(), same);
}

bool has_stages(const Problem& problem) {
  return code_of(problem).has_split(problem);
}

std::vector<std::int64_t> chunk_sizes(const Problem& problem) {
  return code_of(problem).split(problem);
}

std::int64_t most_chunks(const ModelSpec& model, const RuntimeSpec& runtime) {
  return code_of(runtime).most_chunks(model, runtime);
}

std::vector<std::int64_t> even_split(const Problem& problem) {
  return front_loaded(problem.model.layers, problem.layout.pp * problem.layout.vpp);
}

std::int64_t one_layer_a_chunk(const ModelSpec& model, const RuntimeSpec&) {
  return model.layers;
}

bool begins_model(const Stage& stage, std::size_t i) {
  if (!stage.embedding) return false;
  const auto before = [](const LayerRange& a, const LayerRange& b) {
    return std::tie(a.first, a.last) < std::tie(b.first, b.last);
  };
  const auto lowest = std::min_element(stage.chunks.begin(), stage.chunks.end(), before);
  return lowest - stage.chunks.begin() == static_cast<std::ptrdiff_t>(i);
}

bool ends_model(const Stage& stage, std::size_t i) {
  if (!stage.head) return false;
  const auto before = [](const LayerRange& a, const LayerRange& b) {
    return std::tie(a.last, a.first) < std::tie(b.last, b.first);
  };
  const auto highest = std::max_element(stage.chunks.rbegin(), stage.chunks.rend(), before);
  return stage.chunks.rend() - highest == static_cast<std::ptrdiff_t>(i) + 1;
}

std::vector<Stage> chunks_of(const Stage& stage) {
  std::vector<Stage> chunks;
  chunks.reserve(stage.chunks.size());
  for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
    chunks.push_back({.chunks = {stage.chunks[i]},
                      .embedding = begins_model(stage, i),
                      .head = ends_model(stage, i)});
  }
  return chunks;
}

std::vector<Stage> stages(const Problem& problem) {
  const auto pp = static_cast<std::size_t>(problem.layout.pp);
  const std::vector<std::int64_t> sizes = chunk_sizes(problem);
  std::vector<LayerRange> chunks;
  std::int64_t layer = 0;
  for (const std::int64_t size : sizes) {
    chunks.push_back({layer, layer + size});
    layer += size;
  }
  std::vector<Stage> result(pp);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const bool returning = problem.layout.schedule == Schedule::zb_v && i >= pp;
    Stage& stage = result[returning ? 2 * pp - 1 - i : i % pp];
    stage.chunks.push_back(chunks[i]);
    stage.embedding |= i == 0;
    stage.head |= i + 1 == chunks.size();
  }
  if (problem.layout.schedule == Schedule::dualpipe) {
    const std::vector<Stage> forward = result;
    for (std::size_t rank = 0; rank < pp; ++rank) {
      const Stage& other = forward[pp - 1 - rank];
      result[rank].chunks.insert(result[rank].chunks.end(), other.chunks.begin(),
                                 other.chunks.end());
      result[rank].embedding |= other.embedding;
      result[rank].head |= other.head;
    }
  }
  return result;
}

}  // namespace zeroplan
