#pragma once
// The highest moment of a step as sums of remembered pieces instead of a folded program.

#include <memory>
#include <optional>

#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// For one model in one runtime with its settings. Not for use by several threads at once.
class PeakBytes {
 public:
  virtual ~PeakBytes() = default;

  /// The bytes of the highest moment that fold_step finds in the program of rank `rank`, which
  /// holds `stage` with `states`. Empty where only the fold tells.
  virtual std::optional<Bytes> highest(const Problem& problem,
                                       const Stage& stage,
                                       std::int64_t rank,
                                       const ModelStates& states) = 0;
};

/// One of this kind.
template <class Own>
std::unique_ptr<PeakBytes> make_peak_bytes(const WeightInventory& inventory) {
  return std::make_unique<Own>(inventory);
}

}  // namespace zeroplan
