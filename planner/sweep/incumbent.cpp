// Is something worth a look? Front door: Incumbent.
#include "planner/sweep/incumbent.hpp"

#include "cost_model/answer/estimate.hpp"

namespace zeroplan {

double tokens_of_step(const Problem& problem) {
  return static_cast<double>(problem.training.global_batch) *
         static_cast<double>(problem.training.sequence_length);
}

// As long as nothing fits, what is too large by the band alone may be what comes closest.
Incumbent::Incumbent(const Cutoff& cutoff, const SearchSpace& space)
    : cutoff_(cutoff),
      gpus_(space.request.cluster.gpus),
      most_(most_that_fits(space.request.runtime, space.request.cluster.gpu.memory)),
      large_(cutoff.none_fits ? space.request.cluster.gpu.memory : most_) {}

bool Incumbent::hopeless(const ShapeBound& bound) {
  const auto& [seconds, device, complexity] = bound;
  if (seconds > cutoff_.slowest) return true;
  const double value = objective_value(cutoff_.objective, gpus_, seconds, device, complexity);
  const bool above = value > std::min(cutoff_.threshold, own_) &&
                     (cutoff_.front == nullptr || front_.beats(seconds, device) ||
                      cutoff_.front->beats(seconds, device));
  if (above) leave_out(value);
  return above;
}

bool Incumbent::is_bounded() const {
  return cutoff_.front != nullptr ||
         std::min({cutoff_.threshold, own_, cutoff_.slowest}) < no_threshold;
}

}  // namespace zeroplan
