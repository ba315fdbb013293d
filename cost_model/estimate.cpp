// Does it fit? Front door: estimate.
#include "cost_model/estimate.hpp"

#include <cmath>

namespace zeroplan {
namespace {

double normal_cumulative(double z) {
  return 0.5 * std::erfc(-z / std::sqrt(2.0));
}

}  // namespace

Estimate estimate(const Problem& problem, const Remembered& remembered) {
  Estimate result;
  result.capacity = problem.cluster.gpu.memory;
  std::int64_t index = 0;
  for (const Stage& stage : stages(problem)) {
    result.stages.push_back(stage_memory(problem, remembered, stage, index));
    const Bytes needed = result.stages.back().memory.device();
    if (needed > result.device()) result.worst = static_cast<std::size_t>(index);
    ++index;
  }
  const Bytes device = result.device();
  const Bytes uncertain = device - result.peak().states.total();
  const auto half = static_cast<std::int64_t>(
      std::ceil(estimate_band(problem.runtime.kind) * static_cast<double>(uncertain.count())));
  result.low = device - Bytes{half};
  result.high = device + Bytes{half};
  if (half == 0) {
    result.fit_probability = device <= result.capacity ? 1 : 0;
  } else {
    const double deviation = static_cast<double>(half) / 2;
    result.fit_probability =
        normal_cumulative(static_cast<double>(result.headroom().count()) / deviation);
  }
  result.verdict = result.high <= result.capacity ? Verdict::fits
                   : result.low > result.capacity ? Verdict::does_not_fit
                                                  : Verdict::tight;
  return result;
}

Bytes device_bytes(const Problem& problem, const Remembered& remembered, std::size_t index) {
  const std::vector<Stage> all = stages(problem);
  return stage_memory(problem, remembered, all.at(index), static_cast<std::int64_t>(index))
      .memory.device();
}

}  // namespace zeroplan
