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
  const Bytes half = half_band(problem, result.peak());
  result.low = device - half;
  result.high = device + half;
  if (half == Bytes{}) {
    result.fit_probability = device <= result.capacity ? 1 : 0;
  } else {
    const double deviation = static_cast<double>(half.count()) / 2;
    result.fit_probability =
        normal_cumulative(static_cast<double>(result.headroom().count()) / deviation);
  }
  result.verdict = result.high <= result.capacity ? Verdict::fits
                   : result.low > result.capacity ? Verdict::does_not_fit
                                                  : Verdict::tight;
  return result;
}

Bytes half_band(const Problem& problem, const StageMemory& peak) {
  const MemoryBreakdown& m = peak.memory;
  const auto share = [](Bytes bytes, double part) {
    return Bytes{static_cast<std::int64_t>(std::ceil(part * static_cast<double>(bytes.count())))};
  };
  if (problem.runtime.kind == Runtime::megatron) {
    return share(m.allocated(), 0.04) +
           share(m[Category::communicators] + m[Category::context], 0.5);
  }
  if (problem.runtime.kind == Runtime::zero_paper) return share(m[Category::activations], 0.3);
  return share(m.device() - peak.states.total(), 0.3);
}

Bytes device_bytes(const Problem& problem, const Remembered& remembered, std::size_t index) {
  const std::vector<Stage> all = stages(problem);
  return stage_memory(problem, remembered, all.at(index), static_cast<std::int64_t>(index))
      .memory.device();
}

}  // namespace zeroplan
