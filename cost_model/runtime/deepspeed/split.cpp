// How does DeepSpeed split layers into chunks? Front door: deepspeed_split.
//
// Source: runtime/pipe/module.py, partition_method.
#include "cost_model/runtime/deepspeed/code.hpp"

#include <algorithm>
#include <numeric>

#include "cost_model/question/units.hpp"
#include "cost_model/rank/stages.hpp"
#include "cost_model/rank/weights.hpp"

namespace zeroplan {
namespace {

using Sizes = std::vector<std::int64_t>;

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
  ByKind<std::int64_t> of_kind;
  for (const LayerKind kind : all_layer_kinds) {
    if (has_kind(model, kind)) of_kind[kind] = elements(layer_weights(model, kind));
  }
  for (std::int64_t i = 0; i < model.layers; ++i) {
    weight.push_back(of_kind[kind_of(model, i)]);
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

}  // namespace

std::vector<std::int64_t> deepspeed_split(const Problem& problem) {
  const PartitionMethod method = problem.runtime.deepspeed.partition_method;
  if (method == PartitionMethod::parameters) return parameter_balanced_sizes(problem);
  return by_number(problem.model.layers, problem.layout.pp * problem.layout.vpp,
                   method == PartitionMethod::transformer_embedding);
}

}  // namespace zeroplan
