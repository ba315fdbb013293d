#pragma once
// The parts of a layer that can be asked about alone.

namespace zeroplan {

/// All of a layer; or of an expert layer what expert parallelism divides, routed experts and the
/// tokens' way to them and back, or the rest; of a dense layer all is the rest.
enum class LayerPart { whole, routed, rest };

constexpr bool has_routed(LayerPart part) {
  return part != LayerPart::rest;
}
constexpr bool has_rest(LayerPart part) {
  return part != LayerPart::routed;
}

}  // namespace zeroplan
