// How long do collectives take? Front door: timed_loads.
#include "cost_model/pipeline/timed_load.hpp"

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
  const double call =
      collective_time(load.collective, problem.cluster, load.group, load.payload).seconds +
      wait_of_ranks(problem, load);
  return {.load = load,
          .behind = hidden_behind(problem, load),
          .seconds = static_cast<double>(load.calls) * call};
}

std::vector<TimedLoad> timed_loads(const Problem& problem,
                                   const std::vector<CollectiveLoad>& loads) {
  std::vector<TimedLoad> timed;
  timed.reserve(loads.size());
  for (const CollectiveLoad& load : loads) timed.push_back(timed_load(problem, load));
  return timed;
}

}  // namespace zeroplan
