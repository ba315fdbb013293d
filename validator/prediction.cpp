// What should a rank have done? Front door: predicted_rank.
#include "validator/prediction.hpp"

#include <algorithm>

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

}  // namespace zeroplan::engine
