#pragma once
// Private to presets: the letters by which patterns of NVIDIA's hybrid models say layers of one half
// each, in files of Hugging Face and in arguments of Megatron-LM alike.
// Source: Megatron-LM @d98e8a64dd core/models/hybrid/hybrid_layer_allocation.py Symbols.

#include <array>
#include <optional>
#include <string_view>

#include "cost_model/question/layer_kind.hpp"

namespace zeroplan {

/// The kinds in the order of their letters.
inline constexpr std::string_view half_letters = "M*-E";
inline constexpr std::array kinds_of_halves{LayerKind::linear, LayerKind::attention, LayerKind::mlp,
                                            LayerKind::experts};

/// What a letter says; none where it is no such letter.
constexpr std::optional<LayerKind> half_of(char letter) {
  const std::size_t place = half_letters.find(letter);
  if (place == std::string_view::npos) return std::nullopt;
  return kinds_of_halves[place];
}

}  // namespace zeroplan
