#pragma once
// What ranks of nanotron need, in bytes: sums of remembered pieces instead of programs.

#include "cost_model/program/in_flight_cache.hpp"
#include "cost_model/program/peak_bytes.hpp"
#include "cost_model/runtime/nanotron/stage.hpp"

namespace zeroplan {

/// For one model on nanotron. Not for use by several threads at once.
class NanotronPeakBytes final : public PeakBytes {
 public:
  explicit NanotronPeakBytes(const WeightInventory& inventory) : inventory_(inventory) {}

  /// The bytes of the highest moment that fold_step finds in nanotron_stage, of rank `rank`, which
  /// holds `stage` with `states`. Empty where only the fold tells.
  std::optional<Bytes> highest(const Problem& problem,
                               const Stage& stage,
                               std::int64_t rank,
                               const ModelStates& states) override;

 private:
  const WeightInventory& inventory_;
  std::unordered_map<Numbers<9>, ChunkBytes, NumbersHash> chunks_;
  InFlightCache in_flight_;
};

}  // namespace zeroplan
