// What is a model made of? Front door: kind_of.
#include "cost_model/question/model.hpp"

#include <algorithm>
#include <iterator>
#include <span>

namespace zeroplan {

std::string_view layer_name(const ModelSpec& model, LayerKind kind) {
  if (!is_linear(kind) || !model.state_space) return name_of(kind);
  if (is_wide(kind)) {
    return has_experts(kind) ? "state-space MoE layer in 16 bits" : "state-space layer in 16 bits";
  }
  return has_experts(kind) ? "state-space MoE layer" : "state-space layer";
}

LayerKind kind_of(const ModelSpec& model, std::int64_t layer) {
  if (model.layer_kinds.empty()) return model.moe ? LayerKind::moe : LayerKind::dense;
  return model.layer_kinds.at(static_cast<std::size_t>(layer));
}

LayerKinds kinds_of_mtp_module(const ModelSpec& model) {
  if (!model.mtp_kinds.empty()) return {model.mtp_kinds.begin(), model.mtp_kinds.end()};
  return {narrow_kind(kind_of(model, model.layers - 1))};
}

LayerKinds used_kinds(const ModelSpec& model) {
  LayerKinds kinds;
  if (model.layers == 0) return kinds;
  // A module's layer is of the last kind, but in as many bits as most: so where all are wide.
  const LayerKinds module = kinds_of_mtp_module(model);
  std::ranges::copy_if(all_layer_kinds, std::back_inserter(kinds), [&](LayerKind kind) {
    return has_kind(model, kind) || std::ranges::find(module, kind) != module.end();
  });
  return kinds;
}

bool is_windowed(const ModelSpec& model, std::int64_t layer) {
  const std::int64_t windowed = model.attention.windowed_layers;
  const std::int64_t whole = model.layers - windowed;
  if (windowed == 0 || whole <= 0) return windowed > 0;
  const std::int64_t distance = model.layers / whole;
  return layer % distance != distance - 1 || layer / distance >= whole;
}

std::int64_t layers_of_kind(const ModelSpec& model,
                            std::int64_t first,
                            std::int64_t last,
                            LayerKind kind) {
  if (model.layer_kinds.empty()) {  // all are of one kind
    const bool own = kind == (model.moe ? LayerKind::moe : LayerKind::dense);
    return own ? std::max<std::int64_t>(0, last - first) : 0;
  }
  if (last <= first) return 0;
  const std::span all(model.layer_kinds);
  const auto own =
      all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
  return std::count(own.begin(), own.end(), kind);
}

ByKind<std::int64_t> layers_by_kind(const ModelSpec& model, std::int64_t first, std::int64_t last) {
  ByKind<std::int64_t> counts;
  std::int64_t left = last - first;
  if (model.layer_kinds.empty()) {
    counts[kind_of(model, first)] = std::max<std::int64_t>(0, left);
    return counts;
  }
  for (const LayerKind kind : all_layer_kinds) {
    if (left <= 0) break;
    counts[kind] = layers_of_kind(model, first, last, kind);
    left -= counts[kind];
  }
  return counts;
}

std::int64_t layers_with_experts(const ModelSpec& model, std::int64_t first, std::int64_t last) {
  const ByKind<std::int64_t> counts = layers_by_kind(model, first, last);
  std::int64_t sum = 0;
  for (const LayerKind kind : all_layer_kinds) sum += has_experts(kind) ? counts[kind] : 0;
  return sum;
}

std::int64_t query_width(const AttentionSpec& attention) {
  if (!attention.mla) return attention.heads * attention.head_dim;
  return attention.heads * (attention.mla->qk_nope_head_dim + attention.mla->qk_rope_head_dim);
}

std::int64_t attention_output_width(const AttentionSpec& attention) {
  return attention.heads * (attention.mla ? attention.mla->v_head_dim : attention.head_dim);
}

}  // namespace zeroplan
