#pragma once
// The worst stage of one point of a group after another.

#include <optional>
#include <tuple>

#include "cost_model/answer/estimate.hpp"

namespace zeroplan {

/// Weighs a point only where the one before it is not known to need the same memory:
/// Megatron-Core's knobs need none.
class WorstStageCache {
 public:
  const WorstStage& find_or_make(const PlanPoint& point) {
    const Problem& p = point.layout().problem();
    const States states{p.layout.zero, p.layout.offload, p.layout.hsdp};
    if (states_ != states || !code_of(p).sums_blocks) {
      worst_ = worst_stage(point);
      states_ = states;
    }
    return worst_;
  }
  /// The next point is of another group.
  void forget() { states_.reset(); }

 private:
  using States = std::tuple<ZeroStage, Offload, std::int64_t>;
  std::optional<States> states_;
  WorstStage worst_;
};

}  // namespace zeroplan
