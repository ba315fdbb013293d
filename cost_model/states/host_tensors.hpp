#pragma once
// What offload keeps on the host beside the states that it moves there.

#include "cost_model/states/state_recipe.hpp"

namespace zeroplan {

struct WeightInventory;
struct Stage;

struct HostTensors {
  Bytes gradients;
  Bytes staging;  // 16-bit copies on their way to the GPU and back
};

/// Gradients in the format in which they are reduced, for `updated` elements.
inline HostTensors gradients_on_host(const Problem& problem,
                                     const WeightInventory&,
                                     const Stage&,
                                     std::int64_t updated) {
  return {.gradients = Bytes{state_recipe(problem).gradient_bytes * updated}};
}

/// In fp32, as an optimizer of the host reads them.
inline HostTensors fp32_gradients_on_host(const Problem&,
                                          const WeightInventory&,
                                          const Stage&,
                                          std::int64_t updated) {
  return {.gradients = Bytes{4 * updated}};
}

}  // namespace zeroplan
