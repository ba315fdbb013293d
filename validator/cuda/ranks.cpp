// What does a rank on a GPU do? Front door: run_steps.
#include "validator/cuda/ranks.hpp"

namespace zeroplan::engine {

Place place_of(const Layout& layout, std::int64_t rank) {
  return {rank % layout.tp, rank / layout.tp % layout.dp, rank / (layout.tp * layout.dp)};
}

std::int64_t rank_of(const Layout& layout, const Place& place) {
  return place.tp + layout.tp * (place.dp + layout.dp * place.pp);
}

RankReport run_steps(const Problem& problem,
                     const Place& place,
                     Device& device,
                     const Groups& groups,
                     const RunOptions& options) {
  Memory memory(device, options.capacity);
  const Rank rank{
      memory, groups.tp, groups.dp, groups.pp, shape_of(problem, place.tp), problem.layout.zero};
  Engine engine(problem, place, rank, options.samples);
  engine.adam = options.adam;
  const std::int64_t number = rank_of(problem.layout, place);
  RankReport report;
  report.place = place;
  for (std::int64_t step = 1; step <= options.steps; ++step) {
    if (options.before_step) options.before_step(number, step);
    for (Communicator* group : {&groups.tp, &groups.dp, &groups.pp}) group->forget_traffic();
    report.losses.push_back(engine.step(step));
  }
  report.traffic = {{"tp", groups.tp.size(), groups.tp.traffic()},
                    {"dp", groups.dp.size(), groups.dp.traffic()},
                    {"pp", groups.pp.size(), groups.pp.traffic()}};
  report.peak = memory.ledger().peak();
  for (DividedUnit* unit : engine.units()) {
    report.own_parameters.push_back(unit->own_parameters());
    report.kept_parameters.push_back(unit->kept_parameters());
  }
  return report;
}

RunOptions with_samples(const Problem& problem, const RunOptions& options) {
  RunOptions with = options;
  if (!with.samples) {
    with.samples = successions(problem.model.vocab_size, problem.training.sequence_length);
  }
  return with;
}

}  // namespace zeroplan::engine
