#pragma once
// The unit of a pipeline schedule: one direction of one micro-batch through one model chunk.

#include <array>
#include <cstdint>

#include "cost_model/question/names.hpp"

namespace zeroplan {

/// A backward pass is whole, or split in two (Qi et al., arXiv 2401.10241, section 2): the gradient
/// of the input, which the stage before waits for, and those of the weights, which can wait.
enum class PassKind : std::uint8_t { forward, backward, input_gradient, weight_gradient };

template <>
struct Spellings<PassKind> {
  static constexpr std::array<std::string_view, 4> value{"forward", "backward", "input_gradient",
                                                         "weight_gradient"};
};

struct Pass {
  PassKind kind = PassKind::forward;
  std::int32_t chunk = 0;        // of the rank
  std::int32_t micro_batch = 0;  // of the step, in every chunk that it crosses
  bool with_next = false;        // runs as one with the pass after it, whose communication it hides
  friend bool operator==(const Pass&, const Pass&) = default;
};

/// Whether the pass makes the gradient that the stage before waits for.
constexpr bool makes_input_gradient(const Pass& pass) {
  return pass.kind == PassKind::backward || pass.kind == PassKind::input_gradient;
}

}  // namespace zeroplan
