// How long do collectives take? Front door: timed_loads.
#include "cost_model/pipeline/timed_load.hpp"

#include "cost_model/kernel/kernel_habits.hpp"
#include "cost_model/network/collective_time.hpp"

namespace zeroplan {
namespace {

double wait_of_ranks(const Problem& p, const CollectiveLoad& load) {
  const StepConstants& constants = time_constants(p.cluster.gpu).step;
  return runs_local_layers(p) && load.group.name == "tp" && load.beside == Beside::nothing
             ? constants.local_layers_wait
             : 0;
}

}  // namespace

TimedLoad timed_load(const Problem& problem, const CollectiveLoad& load) {
  const ClusterSpec& cluster = problem.cluster;
  const CollectiveTime time = collective_time(load.collective, cluster, load.group, load.payload);
  TimedLoad timed{
      .load = load,
      .behind = hidden_behind(problem, load),
      .seconds = static_cast<double>(load.calls) * (time.seconds + wait_of_ranks(problem, load))};
  if (!cluster.fabric) return timed;
  if (nodes_of(placement(cluster, load.group)) > 1) {
    timed.between = pattern_between_nodes(load.collective, time.algorithm);
  }
  return timed;
}

std::optional<SentBeside> sent_beside(const ClusterSpec& cluster,
                                      const TimedLoad& load,
                                      Behind behind,
                                      double passes) {
  if (!load.between) return std::nullopt;
  const During during = load.load.during;
  const bool once = during == During::step;
  const bool is_beside = once ? behind == Behind::first_forward || behind == Behind::last_backward
                              : behind == Behind::pass;
  const auto who = is_beside ? sending(cluster, load.load.group, *load.between) : std::nullopt;
  if (!who) return std::nullopt;
  if (!once) return SentBeside{*who, during, false, load.seconds / passes};
  const bool forward = behind == Behind::first_forward;
  return SentBeside{*who, forward ? During::forward : During::backward, true, load.seconds};
}

std::vector<TimedLoad> timed_loads(const Problem& problem,
                                   const std::vector<CollectiveLoad>& loads) {
  std::vector<TimedLoad> timed;
  timed.reserve(loads.size());
  for (const CollectiveLoad& load : loads) timed.push_back(timed_load(problem, load));
  return timed;
}

double exposed_in_parts(double communication, double computation, const Problem& problem) {
  if (communication == 0) return 0;
  const double alone = communication / static_cast<double>(problem.layout.tp);
  const double beside = communication - alone;
  const double together = std::min(beside, computation);
  const double lost =
      time_constants(problem.cluster.gpu).step.*kernel_habits(problem).parts_slowdown;
  return communication - together + lost * together;
}

}  // namespace zeroplan
