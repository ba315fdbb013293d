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

/// A kernel of the played step.
struct PlayedKernel {
  Kernel kernel;
  bool repeats;                        // of the forward pass, in a backward pass
  std::int32_t pass;                   // index in the order of passes
  std::int32_t block;                  // position in the chunk's chain
  const Operator* recorded = nullptr;  // instead of a module's kernel
};

/// Who is told of each event of a played step; each may be empty.
struct Visitors {
  std::function<void(const Played&)> tensor;  // allocations and frees
  std::function<void(const PlayedCall&)> call;
  std::function<void(const PlayedKernel&)> kernel;
};

/// What the ledger saw.
struct Playback {
  Moment peak;
  MemoryBreakdown left;  // live after the step: what is resident, if nothing leaks
  std::int64_t events = 0;
};

/// Plays one steady step. Each tensor is freed exactly once.
Playback play_step(const StageProgram& program,
                   const std::vector<Pass>& order,
                   const Visitors& visit = {});

/// The events of one steady step.
std::vector<Played> played_events(const StageProgram& program, const std::vector<Pass>& order);

}  // namespace zeroplan
