#pragma once
// How long the collectives of a step take, and how much of that the step waits for.

#include <algorithm>
#include <optional>
#include <vector>

#include "cost_model/kernel/time_constants.hpp"
#include "cost_model/network/topology.hpp"
#include "cost_model/network/volume.hpp"
#include "cost_model/pipeline/contention.hpp"
#include "cost_model/pipeline/overlap.hpp"

namespace zeroplan {

struct TimedLoad {
  CollectiveLoad load;
  Behind behind = Behind::nothing;
  double seconds = 0;                   // all calls one after the other, nothing beside them
  double exposed = 0;                   // what they add to the step
  std::optional<Pattern> between = {};  // nodes, where switches are known that it could share
};

/// A load with its seconds on the problem's cluster; nothing exposed yet.
TimedLoad timed_load(const Problem& problem, const CollectiveLoad& load);
std::vector<TimedLoad> timed_loads(const Problem& problem,
                                   const std::vector<CollectiveLoad>& loads);

/// How a load has passes beside it where it runs behind this, of so many of each direction in a
/// step. Nothing of what is waited for, or shares no switches.
std::optional<SentBeside> sent_beside(const ClusterSpec& cluster,
                                      const TimedLoad& load,
                                      Behind behind,
                                      double passes);

/// What is left of `communication` seconds beside `computation` seconds, and what the computation
/// loses by sharing the GPU with them, and links. What else is sent makes the communication longer;
/// it is never worse than nothing beside it.
inline double exposed_beside(double communication,
                             double computation,
                             const GpuSpec& gpu,
                             const Crowding& links = {}) {
  const double longer = communication + links.hidden * std::min(communication, computation);
  const double together = std::min(longer, computation);
  const double lost = time_constants(gpu).step.overlap_slowdown + links.waited;
  return std::min(communication, longer - together + lost * together);
}

/// What is left beside `computation` seconds of `communication` seconds that are cut into as many
/// parts as ranks of tensor parallelism take part: one of the parts has nothing beside it.
double exposed_in_parts(double communication, double computation, const Problem& problem);

}  // namespace zeroplan
