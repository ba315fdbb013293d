// What does each pipeline rank hold? Front door: stages.
#include "cost_model/rank/stages.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

#include "cost_model/question/units.hpp"
#include "cost_model/rank/weights.hpp"

namespace zeroplan {
namespace {

using Sizes = std::vector<std::int64_t>;

// `items` over `parts`, what does not divide going to the first parts.
Sizes front_loaded(std::int64_t items, std::int64_t parts) {
  Sizes sizes(static_cast<std::size_t>(parts), items / parts);
  for (std::int64_t i = 0; i < items % parts; ++i) ++sizes[static_cast<std::size_t>(i)];
  return sizes;
}

// Whether the first or the last stage has a number of layers of its own.
bool own_ends(const MegatronSettings& set) {
  return set.decoder_first_pipeline_num_layers > 0 || set.decoder_last_pipeline_num_layers > 0;
}

// Embedding and loss, where they count as a layer.
std::int64_t counted_ends(const MegatronSettings& set) {
  return set.account_for_embedding_in_pipeline_split + set.account_for_loss_in_pipeline_split;
}

// Layers of the chunks of the first stage, of those between and of the last stage; of the very
// first and of the very last chunk so many less.
struct MegatronSplit {
  std::int64_t first = 0, each = 0, last = 0;
  std::int64_t embedding = 0, loss = 0;
};

std::optional<MegatronSplit> megatron_split(const Problem& problem) {
  const MegatronSettings& set = problem.runtime.megatron;
  const std::int64_t pp = problem.layout.pp;
  const std::int64_t vpp = problem.layout.vpp;
  std::int64_t first = set.decoder_first_pipeline_num_layers;
  std::int64_t last = set.decoder_last_pipeline_num_layers;
  if (!own_ends(set)) {
    const std::int64_t all = problem.model.layers + counted_ends(set);
    if (all % (pp * vpp) != 0) return std::nullopt;
    const std::int64_t each = all / (pp * vpp);
    return MegatronSplit{each, each, each, set.account_for_embedding_in_pipeline_split,
                         set.account_for_loss_in_pipeline_split};
  }
  const std::int64_t middle_stages = pp - (first > 0) - (last > 0);
  const std::int64_t middle = problem.model.layers - first - last;
  if (middle_stages < 0 || middle < 0 || (middle_stages == 0) != (middle == 0)) return std::nullopt;
  if (middle_stages > 0 && middle % middle_stages != 0) return std::nullopt;
  const std::int64_t each = middle_stages > 0 ? middle / middle_stages : 0;
  if (first == 0) first = each;
  if (last == 0) last = each;
  if (first % vpp != 0 || last % vpp != 0 || each % vpp != 0) return std::nullopt;
  return MegatronSplit{first / vpp, each / vpp, last / vpp};
}

// Chunks as they are given, if they are all the model in as many as the pipeline has.
bool is_split(const PipelineLayout& layout, const Problem& problem) {
  return std::ssize(layout.layers) == problem.layout.pp * problem.layout.vpp &&
         std::accumulate(layout.layers.begin(), layout.layers.end(), std::int64_t{0}) ==
             problem.model.layers;
}

Sizes megatron_sizes(const Problem& problem) {
  const PipelineLayout& given = problem.runtime.megatron.pipeline_model_parallel_layout;
  if (given.given()) return is_split(given, problem) ? given.layers : Sizes{};
  const std::optional<MegatronSplit> split = megatron_split(problem);
  if (!split) return {};
  const std::int64_t pp = problem.layout.pp;
  Sizes sizes;
  sizes.reserve(static_cast<std::size_t>(pp * problem.layout.vpp));
  for (std::int64_t chunk = 0; chunk < problem.layout.vpp; ++chunk) {
    for (std::int64_t rank = 0; rank < pp; ++rank) {
      sizes.push_back(rank == 0 ? split->first : rank == pp - 1 ? split->last : split->each);
    }
  }
  sizes.front() -= split->embedding;
  sizes.back() -= split->loss;
  return sizes;
}

Sizes torchtitan_sizes(const Problem& problem) {
  const std::int64_t chunks = problem.layout.pp * problem.layout.vpp;
  if (chunks == 1) return {problem.model.layers};
  if (problem.model.layers + 2 < chunks) return {};
  Sizes sizes = front_loaded(problem.model.layers + 2, chunks);
  --sizes.front();
  --sizes.back();
  return sizes;
}

// As many layers for each part as the fullest needs, what is left for the last ones; with `ends`
// embedding and head are a layer each.
Sizes by_number(std::int64_t layers, std::int64_t parts, bool ends) {
  if (layers < parts) return {};
  std::int64_t left = layers + (ends ? 2 : 0);
  const std::int64_t each = ceil_div(left, parts);
  Sizes sizes;
  for (std::int64_t i = 0; i < parts; ++i) {
    const std::int64_t later = parts - i - 1;
    const std::int64_t size = std::min(each, left - later);  // no part may stay empty
    sizes.push_back(size);
    left -= size;
  }
  if (ends) {
    --sizes.front();
    --sizes.back();
  }
  return sizes;
}

// The contiguous split whose largest part is smallest, by bisection over that largest part.
Sizes parameter_balanced_sizes(const Problem& problem) {
  const ModelSpec& model = problem.model;
  const std::int64_t parts = problem.layout.pp * problem.layout.vpp;
  if (model.layers < parts) return {};
  Sizes weight;
  std::int64_t kinds[2] = {0, 0};
  kinds[0] = elements(layer_weights(model, LayerKind::dense));
  if (model.moe) kinds[1] = elements(layer_weights(model, LayerKind::moe));
  for (std::int64_t i = 0; i < model.layers; ++i) {
    weight.push_back(kinds[static_cast<int>(kind_of(model, i))]);
  }
  weight.front() += elements(embedding_weights(model));
  weight.back() += elements(head_weights(model));

  const auto split = [&](std::int64_t limit) {
    Sizes sizes;
    std::int64_t sum = 0;
    std::int64_t count = 0;
    for (std::size_t i = 0; i < weight.size(); ++i) {
      const auto left = static_cast<std::int64_t>(weight.size() - i);
      const std::int64_t parts_left = parts - static_cast<std::int64_t>(sizes.size());
      const bool must_close = count > 0 && left < parts_left;  // no part may stay empty
      if (count > 0 && (sum + weight[i] > limit || must_close)) {
        sizes.push_back(count);
        sum = count = 0;
      }
      sum += weight[i];
      ++count;
    }
    sizes.push_back(count);
    return sizes;
  };
  std::int64_t low = *std::max_element(weight.begin(), weight.end());
  std::int64_t high = std::accumulate(weight.begin(), weight.end(), std::int64_t{0});
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (static_cast<std::int64_t>(split(middle).size()) <= parts) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return split(low);
}

Sizes deepspeed_sizes(const Problem& problem) {
  const PartitionMethod method = problem.runtime.deepspeed.partition_method;
  if (method == PartitionMethod::parameters) return parameter_balanced_sizes(problem);
  return by_number(problem.model.layers, problem.layout.pp * problem.layout.vpp,
                   method == PartitionMethod::transformer_embedding);
}

// Blocks go to a rank until their cost reaches its part.
Sizes nanotron_sizes(const Problem& problem) {
  const ModelSpec& m = problem.model;
  const std::int64_t pp = problem.layout.pp;
  if (m.layers < pp) return {};
  const std::int64_t layer =
      4 * query_width(m.attention) * m.hidden_size + 3 * m.mlp.intermediate_size * m.hidden_size;
  const std::int64_t total = m.layers * layer + m.vocab_size * m.hidden_size;
  Sizes sizes(static_cast<std::size_t>(pp), 0);
  std::int64_t rank = 0;
  std::int64_t cost = 0;
  for (std::int64_t i = 0; i < m.layers; ++i) {
    cost += layer;
    ++sizes[static_cast<std::size_t>(rank)];
    if (rank + 1 < pp && cost * pp >= total * (rank + 1)) ++rank;
  }
  return sizes.back() > 0 ? sizes : Sizes{};
}

}  // namespace

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
  if (problem.runtime.kind == Runtime::megatron) {
    const PipelineLayout& given = problem.runtime.megatron.pipeline_model_parallel_layout;
    return given.given() ? is_split(given, problem) : megatron_split(problem).has_value();
  }
  return !chunk_sizes(problem).empty();
}

std::vector<std::int64_t> chunk_sizes(const Problem& problem) {
  const Layout& layout = problem.layout;
  switch (problem.runtime.kind) {
    case Runtime::megatron:
      return megatron_sizes(problem);
    case Runtime::fsdp2:
    case Runtime::ddp:
      return torchtitan_sizes(problem);
    case Runtime::deepspeed:
      return deepspeed_sizes(problem);
    case Runtime::nanotron:
      return nanotron_sizes(problem);
    case Runtime::zero_paper:
    case Runtime::zeroplan:
      break;
  }
  return front_loaded(problem.model.layers, layout.pp * layout.vpp);
}

std::int64_t most_chunks(const ModelSpec& model, const RuntimeSpec& runtime) {
  const MegatronSettings& set = runtime.megatron;
  if (runtime.kind != Runtime::megatron) return model.layers;
  if (set.pipeline_model_parallel_layout.given()) {
    return std::ssize(set.pipeline_model_parallel_layout.layers);
  }
  return own_ends(set) ? model.layers : model.layers + counted_ends(set);
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
  const Sizes sizes = chunk_sizes(problem);
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
