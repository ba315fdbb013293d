#pragma once
// The parts of a layer that can be asked about alone.

namespace zeroplan {

/// Of an expert layer what expert parallelism divides, routed experts and the tokens' way to them
/// and back, or the rest; of a dense layer all is the rest.
enum class LayerPart { whole, routed, rest };

/// Whether a part holds what is, or is not, routed.
constexpr bool holds(LayerPart part, bool routed) {
  return part == LayerPart::whole || (part == LayerPart::routed) == routed;
}

}  // namespace zeroplan
