#pragma once
// How long one pipeline rank is busy: each pass of its chunks, and what it does around them.

#include <vector>

#include "cost_model/schedule/pass.hpp"
#include "cost_model/step/timed_load.hpp"
#include "cost_model/time/layer_time.hpp"

namespace zeroplan {

/// What a rank computes for one micro-batch, by the kinds of block that it can hold.
struct BlockTimes {
  BlockTime dense;
  BlockTime moe;  // nothing without experts
  BlockTime embedding;
  BlockTime head;

  const BlockTime& layer(LayerKind kind) const { return kind == LayerKind::moe ? moe : dense; }
};

BlockTimes block_times(const Problem& problem);

/// One chunk and one micro-batch, in seconds until the pass is done, with the collectives that it
/// waits for.
struct PassTime {
  double forward = 0;
  double input_gradient = 0;   // with what recompute repeats
  double weight_gradient = 0;  // zero-bubble schedules run it apart

  double backward() const { return input_gradient + weight_gradient; }
  double of(PassKind kind) const {
    switch (kind) {
      case PassKind::forward:
        return forward;
      case PassKind::backward:
        return backward();
      case PassKind::input_gradient:
        return input_gradient;
      case PassKind::weight_gradient:
        break;
    }
    return weight_gradient;
  }
};

struct StageTime {
  std::vector<PassTime> chunks;
  double computed = 0;    // all passes of a step: kernels, or the host where it is slower
  double reductions = 0;  // waited for between the last backward pass and the optimizer
  double optimizer = 0;
  double gathers = 0;            // waited for between the optimizer and the next step
  std::vector<TimedLoad> loads;  // of a step, with what they expose

  /// What the rank's communication adds to its step.
  double exposed() const;
};

/// Assumes a legal layout and the blocks of the same problem.
StageTime stage_time(const Problem& problem,
                     const WeightInventory& inventory,
                     const BlockTimes& blocks,
                     const Stage& stage);

}  // namespace zeroplan
