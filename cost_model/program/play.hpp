#pragma once
// Playing: a program executed tensor by tensor, micro-batch by micro-batch, through a ledger.

#include <functional>
#include <vector>

#include "cost_model/program/fold.hpp"

namespace zeroplan {

/// One allocation or free of the played step.
struct Played {
  TensorSpec tensor;
  std::int64_t id;  // of this allocation
  bool allocates;
  Phase phase;
  std::int32_t pass;   // index in the order of passes; -1: resident, or of the step before
  std::int32_t block;  // position in the chunk's chain; -1: at its border
};

/// A call of the played step, between its allocations and frees.
struct PlayedCall {
  Call call;
  Phase phase;
  std::int32_t pass;   // index in the order of passes
  std::int32_t block;  // position in the chunk's chain; -1: at its border
};

/// What the ledger saw.
struct Playback {
  Moment peak;
  MemoryBreakdown left;  // live after the step: what is resident, if nothing leaks
  std::int64_t events = 0;
};

/// Plays one steady step. Each tensor is freed exactly once; `visit`, if not empty, is called with
/// every allocation and free, `visit_call` with every call.
Playback play_step(const StageProgram& program,
                   const std::vector<Pass>& order,
                   const std::function<void(const Played&)>& visit = {},
                   const std::function<void(const PlayedCall&)>& visit_call = {});

/// The events of one steady step.
std::vector<Played> played_events(const StageProgram& program, const std::vector<Pass>& order);

}  // namespace zeroplan
