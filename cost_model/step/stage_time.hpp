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
StagePasses stage_passes(const Problem& problem, std::span<const ChunkTime* const> chunks);

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
  // At the end of a step.
  struct AtEnd {
    struct Hidden {
      double seconds = 0;
      bool forward = false;  // behind the next step's first pass; else behind the last backward one
    };
    double waited = 0;
    boost::container::small_vector<Hidden, 2> hidden;  // each has the whole pass beside it
  };
  AtEnd reductions;   // of gradients
  AtEnd gathers;      // of parameters
  Directions beside;  // passes, all of a step
  Directions waited;  // for in passes, all of a step
  Directions copies;  // around them, one micro-batch
  double optimizer = 0;
  bool in_passes = false;  // any of it; else all is at the end
};

/// With the overlap that the problem's runtime is set to.
UpdateLoads update_loads(const Problem& problem, const StageUpdate& update);

/// Seconds of these loads that the step waits for.
inline double exposed_at_end(const UpdateLoads::AtEnd& loads,
                             const StagePasses& passes,
                             const GpuSpec& gpu) {
  double seconds = loads.waited;
  for (const UpdateLoads::AtEnd::Hidden& load : loads.hidden) {
    const double beside = load.forward ? passes.once.forward : passes.once.backward;
    seconds += exposed_beside(load.seconds, beside, gpu);
  }
  return seconds;
}

/// What the update adds to each pass, as a part of it: as much to all chunks.
Directions added_part(const Problem& problem, const StagePasses& passes, const UpdateLoads& update);

/// A chunk's pass with that part of it.
inline PassTime longer(PassTime chunk, const Directions& added_part) {
  chunk.forward += added_part.forward * chunk.forward;
  chunk.input_gradient += added_part.backward * chunk.backward();
  return chunk;
}

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
