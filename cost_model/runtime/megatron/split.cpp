// How does Megatron-Core split layers into chunks? Front door: megatron_split.
//
// Source: core/transformer/transformer_config.py: equal chunks unless embedding, loss, first or
// last stage are accounted for, or the layout is given as a whole.
#include "cost_model/runtime/megatron/code.hpp"

#include <numeric>
#include <optional>

#include "cost_model/rank/stages.hpp"

namespace zeroplan {
namespace {

using Sizes = std::vector<std::int64_t>;

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
struct StageSizes {
  std::int64_t first = 0, each = 0, last = 0;
  std::int64_t embedding = 0, loss = 0;
};

std::optional<StageSizes> even_or_as_set(const Problem& problem) {
  const MegatronSettings& set = problem.runtime.megatron;
  const std::int64_t pp = problem.layout.pp;
  const std::int64_t vpp = problem.layout.vpp;
  std::int64_t first = set.decoder_first_pipeline_num_layers;
  std::int64_t last = set.decoder_last_pipeline_num_layers;
  if (!own_ends(set)) {
    const std::int64_t all = problem.model.layers + counted_ends(set);
    if (all % (pp * vpp) != 0) return std::nullopt;
    const std::int64_t each = all / (pp * vpp);
    return StageSizes{each, each, each, set.account_for_embedding_in_pipeline_split,
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
  return StageSizes{first / vpp, each / vpp, last / vpp};
}

// Chunks as they are given, if they are all the model in as many as the pipeline has.
bool is_split(const PipelineLayout& layout, const Problem& problem) {
  return std::ssize(layout.layers) == problem.layout.pp * problem.layout.vpp &&
         std::accumulate(layout.layers.begin(), layout.layers.end(), std::int64_t{0}) ==
             problem.model.layers;
}

}  // namespace

std::vector<std::int64_t> megatron_split(const Problem& problem) {
  const PipelineLayout& given = problem.runtime.megatron.pipeline_model_parallel_layout;
  if (given.given()) return is_split(given, problem) ? given.layers : Sizes{};
  const std::optional<StageSizes> split = even_or_as_set(problem);
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

bool has_megatron_split(const Problem& problem) {
  const PipelineLayout& given = problem.runtime.megatron.pipeline_model_parallel_layout;
  return given.given() ? is_split(given, problem) : even_or_as_set(problem).has_value();
}

std::int64_t most_megatron_chunks(const ModelSpec& model, const RuntimeSpec& runtime) {
  const MegatronSettings& set = runtime.megatron;
  if (set.pipeline_model_parallel_layout.given()) {
    return std::ssize(set.pipeline_model_parallel_layout.layers);
  }
  return own_ends(set) ? model.layers : model.layers + counted_ends(set);
}

}  // namespace zeroplan
