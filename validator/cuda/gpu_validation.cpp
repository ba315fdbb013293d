// Was the prediction right on a GPU? Front door: validate_on_gpus.
#include "validator/cuda/gpu_validation.hpp"

#include <algorithm>
#include <cstring>

namespace zeroplan::engine {
namespace {

bool same(const std::vector<Bf16>& a, const std::vector<Bf16>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Bf16)) == 0;
}

bool same_parameters(const RunReport& a, const RunReport& b) {
  return std::equal(a.ranks.begin(), a.ranks.end(), b.ranks.begin(), b.ranks.end(),
                    [](const RankReport& x, const RankReport& y) {
                      return std::equal(x.own_parameters.begin(), x.own_parameters.end(),
                                        y.own_parameters.begin(), y.own_parameters.end(), same);
                    });
}

// Stages 2 and 3 reduce each micro-batch, 0 and 1 once a step.
bool reduce_alike(const Problem& p, ZeroStage other) {
  const auto often = [](ZeroStage zero) { return zero >= ZeroStage::gradients; };
  return micro_batches(p) == 1 || often(p.layout.zero) == often(other);
}

}  // namespace

bool GpuValidation::agrees() const {
  return validation.agrees() &&
         std::all_of(closings.begin(), closings.end(), [](const Closing& c) { return c.closes(); });
}

GpuValidation validate_on_gpus(Shrunk full, Shrunk small, const GpuRunner& run) {
  GpuValidation result{{.full = std::move(full), .small = std::move(small)}, {}};
  Validation& v = result.validation;
  const Problem& p = v.small.problem;
  const Remembered remembered(p.model);
  const GpuRun first = run(p);
  result.closings = first.closings;
  v.losses = first.report.losses();
  v.seconds = first.report.seconds;
  for (const RankReport& rank : first.report.ranks) {
    v.ranks.push_back(compared(p, remembered, rank));
  }
  for (std::size_t i = 0; i < names<ZeroStage>().size(); ++i) {
    Problem other = p;
    other.layout.zero = static_cast<ZeroStage>(i);
    if (other.layout.zero == p.layout.zero) continue;
    const RunReport again = run(other).report;
    v.stages.push_back({other.layout.zero, again.losses() == v.losses,
                        same_parameters(again, first.report), reduce_alike(p, other.layout.zero)});
  }
  for (std::int64_t stage = 0; stage < v.full.problem.layout.pp; ++stage) {
    v.counted.push_back(counted_rank(v.full.problem, stage));
  }
  return result;
}

}  // namespace zeroplan::engine
