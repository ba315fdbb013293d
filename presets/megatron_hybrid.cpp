// Which layers does Megatron-LM's pattern of a hybrid model say? Front doors: read_hybrid_layers,
// pattern_of.
#include "presets/megatron_hybrid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "presets/half_letters.hpp"

namespace zeroplan {
namespace {

LayerKind kind_of_letter(const JsonObject& c, char letter) {
  if (const auto kind = half_of(letter)) return *kind;
  c.fail(fmt::format(
      "hybrid-layer-pattern: '{}' is not described; M, *, - and E are (Mamba-2, attention, MLP, "
      "experts)",
      letter));
}

StateSpaceSpec read_state_space(const JsonObject& c, const ModelSpec& model) {
  constexpr std::int64_t usual_state = 128, usual_width = 64, usual_groups = 8;
  constexpr std::int64_t expansion = 2, filter = 4, chunk = 128;  // core/ssm/mamba_mixer.py
  StateSpaceSpec spec{.convolution = filter, .chunk = chunk};
  spec.state = c.find_integer("mamba_state_dim", any_size).value_or(usual_state);
  spec.head_dim = c.find_integer("mamba_head_dim", any_size).value_or(usual_width);
  spec.groups = c.find_integer("mamba_num_groups", any_heads).value_or(usual_groups);
  const auto heads = c.find_integer("mamba_num_heads", any_heads);
  const std::int64_t width = expansion * model.hidden_size;
  if (!heads && width % spec.head_dim != 0) {
    c.fail(
        fmt::format("mamba-head-dim {} does not divide {}, twice the hidden size: give "
                    "mamba-num-heads",
                    spec.head_dim, width));
  }
  spec.heads = heads.value_or(width / spec.head_dim);
  if (spec.heads % spec.groups != 0) {
    c.fail(fmt::format("mamba-num-groups {} do not divide {} heads", spec.groups, spec.heads));
  }
  return spec;
}

}  // namespace

PipelineLayout layout_of_pattern(std::string_view pattern) {
  PipelineLayout layout{{0}, std::ranges::count(pattern, mtp_border)};
  for (const char letter : pattern.substr(0, pattern.find(mtp_border))) {
    letter == chunk_border ? layout.layers.push_back(0) : void(++layout.layers.back());
  }
  return layout;
}

std::int64_t layers_of_pattern(std::string_view pattern) {
  const std::vector<std::int64_t> chunks = layout_of_pattern(pattern).layers;
  return std::reduce(chunks.begin(), chunks.end());
}

std::string pattern_of(std::span<const LayerKind> kinds) {
  std::string pattern;
  for (const LayerKind kind : kinds) {
    const auto* place = std::ranges::find(kinds_of_halves, narrow_kind(kind));
    pattern += half_letters.at(static_cast<std::size_t>(place - kinds_of_halves.begin()));
  }
  return pattern;
}

void read_hybrid_layers(const JsonObject& c, ModelSpec& model) {
  const std::string pattern = c.string("hybrid_layer_pattern");
  const auto kinds_of = [&](std::string_view letters) {
    std::vector<LayerKind> kinds;
    for (const char letter : letters) {
      if (letter != chunk_border) kinds.push_back(kind_of_letter(c, letter));
    }
    return kinds;
  };
  const std::size_t end = pattern.find(mtp_border);
  model.layer_kinds = kinds_of(pattern.substr(0, end));
  if (model.layers == 0 || model.layers > any_layers.most) {
    c.fail(fmt::format("hybrid-layer-pattern says {} layers: 1 to {} are allowed", model.layers,
                       any_layers.most));
  }
  const auto has = [&](LayerKind kind) { return std::ranges::count(model.layer_kinds, kind) > 0; };
  if (end != std::string::npos) {
    const std::string module = pattern.substr(end, pattern.find(mtp_border, end + 1) - end);
    model.mtp_kinds = kinds_of(module.substr(1));
    model.mtp_layers = std::ranges::count(pattern, mtp_border);
    bool alike = pattern.size() - end == module.size() * static_cast<std::size_t>(model.mtp_layers);
    for (std::size_t at = end; alike && at < pattern.size(); at += module.size()) {
      alike = pattern.compare(at, module.size(), module) == 0;
    }
    if (!alike) {
      c.fail(
          fmt::format("hybrid-layer-pattern: the modules '{}' differ: those that are alike are "
                      "described",
                      pattern.substr(end + 1)));
    }
    if (!std::ranges::all_of(model.mtp_kinds, has)) {
      c.fail(fmt::format("hybrid-layer-pattern: '{}' has layers that no other part has",
                         module.substr(1)));
    }
  }
  if (has(LayerKind::linear)) model.state_space = read_state_space(c, model);
  if (has(LayerKind::experts) && !model.moe) c.fail("no 'num-experts'");
  if (!has(LayerKind::experts)) model.moe.reset();
  if (!has(LayerKind::mlp)) model.mlp.intermediate_size = 0;
}

}  // namespace zeroplan
