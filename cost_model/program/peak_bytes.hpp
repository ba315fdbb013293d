#pragma once
// The highest moment of a step as sums of remembered pieces instead of a folded program.

#include <algorithm>
#include <memory>
#include <optional>

#include "cost_model/program/call.hpp"
#include "cost_model/states/model_states.hpp"

namespace zeroplan {

/// Bytes that the highest moment of a step is never below.
struct LeastBytes {
  Bytes states;               // through the step
  Bytes buffers = {};         // the same
  Bytes until_backward = {};  // through its forward passes and until the first backward pass
  Bytes at_end = {};          // of the step

  /// `kept`: of the layers' activations, what lives in some moment between the first forward and
  /// the first backward pass.
  Bytes with(Bytes kept) const {
    return states + buffers + std::max(until_backward + kept, at_end);
  }
};

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

  /// What `highest` is never below, from sizes alone, without a block.
  virtual LeastBytes at_least(const Problem&,
                              const Stage&,
                              std::int64_t,
                              const ModelStates& states) {
    return {states.total()};
  }

  /// The calls of fold_calls in the groups that hold states; empty where only the fold tells.
  virtual std::optional<std::vector<Call>> update_calls(const Problem&, const Stage&) {
    return std::nullopt;
  }
};

/// One of this kind.
template <class Own>
std::unique_ptr<PeakBytes> make_peak_bytes(const WeightInventory& inventory) {
  return std::make_unique<Own>(inventory);
}

}  // namespace zeroplan
