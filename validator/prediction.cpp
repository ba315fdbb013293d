// What should a rank have done? Front door: predicted_rank.
#include "validator/prediction.hpp"

#include <algorithm>

#include "cost_model/answer/step_time.hpp"
#include "cost_model/kernel/layer_gemms.hpp"
#include "cost_model/network/volume.hpp"
#include "cost_model/program/play.hpp"
#include "cost_model/program/schedule.hpp"

namespace zeroplan::engine {

RankPrediction predicted_rank(const Problem& problem,
                              const Evaluator& evaluator,
                              std::int64_t stage_index) {
  const Stage stage = stages(problem)[static_cast<std::size_t>(stage_index)];
  const StageProgram program = evaluator.stage_program(problem, stage);
  const Moment peak =
      play_step(program, zeroplan::passes(problem, stage_index, micro_batches(problem))).peak;
  RankPrediction prediction{.peak = {peak.live, peak.phase, peak.tensor}, .traffic = {}};
  for (const CollectiveLoad& load : step_collectives(problem, evaluator.weights(), stage)) {
    auto& list = prediction.traffic;
    auto group = std::find_if(list.begin(), list.end(),
                              [&](const GroupTraffic& g) { return g.group == load.group.name; });
    if (group == list.end()) {
      group = list.insert(list.end(), {load.group.name, load.group.ranks, {}});
    }
    group->traffic[{load.collective, load.payload.count()}] += load.calls;
  }
  return prediction;
}

StepSeconds predicted_seconds(const Problem& problem,
                              const Evaluator& evaluator,
                              std::int64_t stage_index) {
  const StepTime time = step_time(problem, evaluator);
  StepSeconds predicted{.step = time.seconds};
  const auto add = [&](const std::vector<Gemm>& gemms, std::int64_t times, bool again) {
    for (const Gemm& gemm : gemms) {
      const std::int64_t count =
          times * (again && gemm.product == Product::forward ? 2 : 1) * micro_batches(problem);
      const auto runs = static_cast<double>(count);
      predicted.product_calls += count;
      predicted.products += runs * gemm_seconds(gemm, problem.cluster.gpu,
                                                problem.training.precision, Pace::sustained);
      predicted.flops += runs * flops(gemm);
    }
  };
  const Stage stage = stages(problem)[static_cast<std::size_t>(stage_index)];
  add(layer_gemms(problem, LayerKind::dense), layer_count(stage),
      problem.layout.recompute == Recompute::full);
  if (stage.head) add(head_gemms(problem), 1, false);
  for (const TimedLoad& load : time.stages[static_cast<std::size_t>(stage_index)].loads) {
    const CollectiveLoad& call = load.load;
    CallSeconds& sum = predicted.calls[{call.group.name, call.collective, call.payload.count()}];
    sum.calls += call.calls;
    sum.seconds += load.seconds;
    sum.exposed += load.exposed;
  }
  return predicted;
}

}  // namespace zeroplan::engine
