#pragma once
// How long one pipeline rank is busy: each pass of its chunks, and what it does around them.

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <span>
#include <vector>

#include "cost_model/pipeline/block_times.hpp"
#include "cost_model/pipeline/lanes.hpp"
#include "cost_model/schedule/pass.hpp"

namespace zeroplan {

/// The passes of one chunk and one micro-batch, in seconds until each is done, with the collectives
/// that it waits for.
template <class Seconds>
struct PassTimeOf {
  Seconds forward = 0;
  Seconds input_gradient = 0;   // with what recompute repeats
  Seconds weight_gradient = 0;  // zero-bubble schedules run it apart

  Seconds backward() const { return input_gradient + weight_gradient; }
  Seconds at(PassKind kind) const {
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
using PassTime = PassTimeOf<double>;

/// What one chunk and one micro-batch take, in seconds.
struct ChunkTime {
  PassTime pass;
  Directions once;    // until its passes are done
  Directions waited;  // of `once`, for collectives
  Directions attention;
  double products = 0;  // its weight gradients' kernels
  SentKinds between;
};

/// The times of a chunk as a stage of its own.
ChunkTime chunk_time(const Problem& problem, const BlockTimes& blocks, const Stage& chunk);

/// The passes of a rank with what its layers send: all that ZeRO, HSDP and offload do not decide.
struct StagePasses {
  std::vector<PassTime> chunks;
  double computed = 0;  // all passes of a step: kernels, or the host where it is slower
  Directions once;      // of all chunks and one micro-batch, until the passes are done
  Directions attention;
  double products = 0;  // weight gradients of all chunks, one micro-batch
  SentKinds between;    // nodes, of all chunks and one micro-batch, with messages to neighbours
};

/// The passes of a legal layout's stage with these chunks.
StagePasses stage_passes(const Problem& problem, std::span<const ChunkTime* const> chunks);

/// What ZeRO, HSDP and offload decide: how gradients and parameters travel and are updated.
struct StageUpdate {
  std::vector<TimedLoad> loads;  // of a step; nothing exposed yet
  double optimizer = 0;
  Directions copies;  // around collectives, one micro-batch
};

/// The update of a stage; `loads`: update_collectives of the stage.
StageUpdate stage_update(const Problem& problem,
                         const WeightInventory& inventory,
                         const Stage& stage,
                         const std::vector<CollectiveLoad>& loads);

/// Seconds of an update between the last backward pass and the next step.
struct AtEnd {
  double reductions = 0;  // of gradients
  double gathers = 0;     // of parameters
};

/// The seconds of an update by what they run beside: all that its time reads.
struct UpdateLoads {
  // What has a whole pass beside it.
  struct Hidden {
    double seconds = 0;
    bool gathers = false;  // else reduces
    bool forward = false;  // behind the next step's first pass; else behind the last backward one
  };
  Directions beside;  // passes, one micro-batch
  Directions layer;   // of `beside`, for the layer that a chunk's pass begins with
  Directions waited;  // for in passes, one micro-batch, with the copies around them
  AtEnd at_end;       // waited for
  double optimizer = 0;
  boost::container::small_vector<Hidden, 2> hidden;
  bool in_passes = false;        // any of the update; else all is at the end
  std::vector<SentBeside> sent;  // beside passes, between nodes
};

/// The seconds of an update with the overlap that the problem's runtime is set to.
UpdateLoads update_loads(const Problem& problem, const StageUpdate& update);

/// Which part the step waits for of what has its first forward pass, or its last backward pass,
/// beside it: groups share the links.
inline double exposed_part(const UpdateLoads& loads,
                           bool forward,
                           const StagePasses& passes,
                           const ClusterSpec& cluster) {
  double all = 0;
  for (const UpdateLoads::Hidden& load : loads.hidden) {
    if (load.forward == forward) all += load.seconds;
  }
  const double beside = forward ? passes.once.forward : passes.once.backward;
  if (all <= 0) return 0;
  const Crowding links = crowding(cluster, loads.sent, passes.between,
                                  {.during = forward ? During::forward : During::backward,
                                   .once = true,
                                   .seconds = beside,
                                   .beside = all});
  return exposed_beside(all, beside, cluster.gpu, links) / all;
}

/// What the step waits for at its end.
inline AtEnd exposed_at_end(const UpdateLoads& loads,
                            const StagePasses& passes,
                            const ClusterSpec& cluster) {
  AtEnd exposed = loads.at_end;
  const double in_forward = exposed_part(loads, true, passes, cluster);
  const double in_backward = exposed_part(loads, false, passes, cluster);
  for (const UpdateLoads::Hidden& load : loads.hidden) {
    (load.gathers ? exposed.gathers : exposed.reductions) +=
        load.seconds * (load.forward ? in_forward : in_backward);
  }
  return exposed;
}

/// What of so many seconds beside a pass of some chunks is waited for, where `layer` of them bring
/// what each chunk begins with.
inline double exposed_beside_chunks(double all,
                                    double layer,
                                    std::size_t chunks,
                                    double pass,
                                    const GpuSpec& gpu,
                                    const Crowding& links = {}) {
  const double first = std::min(all, static_cast<double>(chunks) * layer);
  return first + exposed_beside(all - first, pass, gpu, links);
}

/// What the update adds to each pass, as a part of it: as much to all chunks.
inline Directions added_part(const UpdateLoads& update,
                             const StagePasses& passes,
                             const ClusterSpec& cluster) {
  Directions part;
  if (!update.in_passes) return part;
  for (const During during : {During::forward, During::backward}) {
    const double once = passes.once.at(during), beside = update.beside.at(during);
    const Crowding links =
        crowding(cluster, update.sent, passes.between,
                 {.during = during, .seconds = once, .beside = beside});
    const double added = update.waited.at(during) +
                         exposed_beside_chunks(beside, update.layer.at(during),
                                               passes.chunks.size(), once, cluster.gpu, links);
    part.at(during) = added / once;
  }
  return part;
}

/// A chunk's passes, longer by `added_part` of each.
template <class Seconds>
PassTimeOf<Seconds> longer(const PassTime& chunk, const DirectionsOf<Seconds>& added_part) {
  return {.forward = chunk.forward + added_part.forward * chunk.forward,
          .input_gradient = chunk.input_gradient + added_part.backward * chunk.backward(),
          .weight_gradient = chunk.weight_gradient};
}

/// How long a rank is busy with its passes and its update together, with all that is sent.
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

/// The time of a stage; `sent`: pass_collectives of the stage.
StageTime stage_time(const Problem& problem,
                     const StagePasses& passes,
                     const StageUpdate& update,
                     const std::vector<CollectiveLoad>& sent);

}  // namespace zeroplan
