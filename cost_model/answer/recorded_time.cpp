// How long is a recorded rank busy? Front door: recorded_stage_time.
#include "cost_model/answer/recorded_time.hpp"

#include "cost_model/kernel/operator_time.hpp"

namespace zeroplan {
namespace {

// What the calls of layers add to one pass of so many seconds.
double waited(const std::vector<TimedLoad>& loads,
              During during,
              double once,
              double computed,
              const GpuSpec& gpu) {
  double waits = 0, beside = 0;
  for (const TimedLoad& load : loads) {
    if (load.load.during != during) continue;
    (load.behind == Behind::pass ? beside : waits) += once * load.seconds;
  }
  return waits + exposed_beside(beside, computed, gpu);
}

}  // namespace

StageTime recorded_stage_time(const Problem& problem, const Evaluator& evaluator) {
  const GpuSpec& gpu = problem.cluster.gpu;
  const Stage stage = stages(problem).front();
  const StageProgram program = evaluator.stage_program(problem, stage);
  KernelTime forward, backward;
  for (const Runs& runs : program.chunks.front().each) {
    const Block& block = runs.front().block->block();
    forward += operators_time(block, block.forward, gpu);
    backward += operators_time(block, block.backward, gpu);
  }
  const double once = 1 / static_cast<double>(forward_passes(problem));
  const std::vector<CollectiveLoad> sent = pass_collectives(problem, evaluator.weights(), stage);
  const std::vector<TimedLoad> loads = timed_loads(problem, sent);
  StagePasses passes{.computed = forward.total() + backward.total(),
                     .once = {once * forward.total(), once * backward.total()},
                     .attention = {once * forward.attention, once * backward.attention}};
  for (const During during : {During::forward, During::backward}) {
    const double computed = passes.once.at(during);
    passes.once.at(during) += waited(loads, during, once, computed, gpu);
  }
  passes.chunks.push_back({.forward = passes.once.forward, .input_gradient = passes.once.backward});
  const StageUpdate update{
      .loads = timed_loads(problem, update_collectives(problem, evaluator.weights(), stage)),
      .optimizer = operators_time(program.step, program.step.forward, gpu).total(),
      .copies = {}};
  return stage_time(problem, passes, update, sent);
}

}  // namespace zeroplan
