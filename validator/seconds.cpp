// Did a step take what was predicted? Front door: compared_seconds.
#include "validator/seconds.hpp"

#include <algorithm>

#include "cost_model/answer/step_time.hpp"
#include "cost_model/kernel/gemm.hpp"

namespace zeroplan::engine {

double ComparedSeconds::hidden(const StepSeconds& of) {
  double seconds = 0;
  double exposed = 0;
  for (const auto& [kind, call] : of.calls) {
    seconds += call.seconds;
    exposed += call.exposed;
  }
  return seconds > 0 ? std::max(0.0, 1 - exposed / seconds) : 0;
}

ComparedSeconds compared_seconds(const Problem& problem,
                                 const Evaluator& evaluator,
                                 const RunReport& report) {
  const RankReport& slowest = *std::max_element(
      report.ranks.begin(), report.ranks.end(),
      [](const auto& a, const auto& b) { return a.seconds.step < b.seconds.step; });
  return {.place = slowest.place,
          .predicted = predicted_seconds(problem, evaluator, slowest.place.pp),
          .measured = slowest.seconds,
          .model_flops = step_time(problem, evaluator).flops.model,
          .peak_flops = static_cast<double>(world_size(problem.layout)) *
                        peak_flops(problem.cluster.gpu, problem.training.precision)};
}

}  // namespace zeroplan::engine
