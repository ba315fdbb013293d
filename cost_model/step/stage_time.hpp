#pragma once
// How long one pipeline rank is busy: each pass of its chunks, and what it does around them.

#include <boost/container/small_vector.hpp>
#include <span>
#include <vector>

#include "cost_model/schedule/pass.hpp"
#include "cost_model/step/block_times.hpp"

namespace zeroplan {

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

/// One chunk and one micro-batch.
struct ChunkTime {
  PassTime pass;
  Directions once;    // until its passes are done
  Directions waited;  // of that, for collectives
  Directions attention;
};

/// Of a chunk as a stage of its own.
ChunkTime chunk_time(const Problem& problem, const BlockTimes& blocks, const Stage& chunk);

/// The passes of a rank with what its layers send: all that ZeRO, HSDP and offload do not decide.
struct StagePasses {
  std::vector<PassTime> chunks;
  double computed = 0;  // all passes of a step: kernels, or the host where it is slower
  Directions once;      // of all chunks and one micro-batch, until the passes are done
  Directions attention;
  double products = 0;  // weight gradients of all chunks, one micro-batch
};

/// Of a legal layout's stage with these chunks.
StagePasses stage_passes(const Problem& problem, std::span<const ChunkTime> chunks);

/// What they do decide: how gradients and parameters travel and are updated.
struct StageUpdate {
  std::vector<TimedLoad> loads;  // of a step; nothing exposed yet
  double optimizer = 0;
  Directions copies;  // around collectives, one micro-batch
};

StageUpdate stage_update(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage);

/// The seconds of an update by what they run beside: all that its time reads.
struct UpdateLoads {
  struct AtEnd {
    double seconds = 0;
    Behind behind = Behind::nothing;
    bool gather = false;  // of parameters; else a reduction of gradients
  };
  boost::container::small_vector<AtEnd, 4> at_end;
  Directions beside;  // passes, all of a step
  Directions waited;  // for in passes, all of a step
  Directions copies;  // around them, one micro-batch
  double optimizer = 0;
  bool in_passes = false;  // any of it; else all is at the end
};

/// With the overlap that the problem's runtime is set to.
UpdateLoads update_loads(const Problem& problem, const StageUpdate& update);

/// What the update adds to the passes and to the end of the step.
struct UpdateTime {
  Directions passes;      // to all chunks of one micro-batch
  double reductions = 0;  // waited for between the last backward pass and the optimizer
  double gathers = 0;     // waited for between the optimizer and the next step
};

UpdateTime update_time(const Problem& problem,
                       const StagePasses& passes,
                       const UpdateLoads& update);

/// A chunk's pass with its part of what the update adds to the passes of all chunks.
PassTime with_update(PassTime chunk, const StagePasses& passes, const UpdateTime& update);

/// Both together, with all that is sent.
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

StageTime stage_time(const Problem& problem,
                     const StagePasses& passes,
                     const StageUpdate& update,
                     const Stage& stage);

}  // namespace zeroplan
