#include "cost_model/allocator/replay.hpp"

#include <algorithm>
#include <random>

#include "cost_model/answer/stage_memory.hpp"
#include "cost_model/program/fold.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

Bytes sum_of(const std::vector<TensorSpec>& specs) {
  return sum(specs).allocated();
}

const PhasePeak& find(const std::vector<PhasePeak>& phases, Phase phase) {
  return *std::find_if(phases.begin(), phases.end(),
                       [&](const PhasePeak& peak) { return peak.phase == phase; });
}

}  // namespace

TEST_CASE("a stage's peak is the higher of its construction and its step, in every runtime") {
  std::mt19937 random(20261121);
  const int enough = tests::draws(600);
  int drawn = 0, of_construction = 0;
  while (drawn < enough) {
    std::optional<Problem> p = tests::Draw(random).problem();
    if (!p || !has_allocator(*p)) continue;
    if (drawn % 3 == 0) {  // optimizer states divided by many ranks: what is built is most of all
      p->layout.dp *= 64;
      p->training.global_batch *= 64;
      if (first_violation(*p)) continue;
    }
    const Evaluator evaluator(*p);
    const Stage stage = stages(*p).front();
    const StageProgram program = evaluator.stage_program(*p, stage);
    const Startup startup = evaluator.startup(*p, stage, program);
    CAPTURE(name_of(p->runtime.kind), p->model.name, p->layout.dp, p->layout.tp, p->layout.pp,
            name_of(p->layout.zero));
    const Moment step = fold_step(program, representative_passes(*p, 0));
    const Footprint built = fold(startup.construction, startup.construction.forward, Phase::init);
    const StageMemory memory = stage_memory(*p, evaluator, stage, 0);
    const bool init = built.peak.live.allocated() > step.live.allocated();
    REQUIRE(memory.memory.allocated() ==
            std::max(built.peak.live.allocated(), step.live.allocated()));
    REQUIRE((memory.phase == Phase::init) == init);
    Bytes live;
    for (const LiveTensors& tensors : live_tensors(*p, evaluator, stage, 0)) {
      live += tensors.total();
    }
    REQUIRE(live == memory.memory.allocated());
    of_construction += init;
    ++drawn;
  }
  REQUIRE(of_construction > enough / 100);
}

TEST_CASE("a run's phases come in order, and no step needs more than the steady one") {
  std::mt19937 random(7);
  const int enough = tests::draws(100);
  int drawn = 0;
  while (drawn < enough) {
    const std::optional<Problem> p = tests::Draw(random).problem();
    if (!p || !has_allocator(*p)) continue;
    const Evaluator evaluator(*p);
    const Stage stage = stages(*p).front();
    const StageProgram program = evaluator.stage_program(*p, stage);
    const Startup startup = evaluator.startup(*p, stage, program);
    const std::vector<Pass> order = representative_passes(*p, 0);
    CAPTURE(name_of(p->runtime.kind), p->model.name, p->layout.dp, p->layout.tp, p->layout.pp);
    const Replay fresh = replay(program, startup, order, {});
    const Replay resumed = replay(program, startup, order, {}, Start::resumed);
    const std::vector<PhasePeak> phases = phases_of(fresh.phases, resumed);

    REQUIRE(phases.at(0).phase == Phase::init);
    REQUIRE(phases.at(1).phase == Phase::first_step);
    REQUIRE(phases.back().phase == Phase::resume);
    Bytes steady;
    for (std::size_t i = 2; i + 1 < phases.size(); ++i) {
      steady = std::max(steady, phases[i].allocated);
    }
    REQUIRE(steady >= fold_step(program, order).live.allocated());
    REQUIRE(fresh.peak_allocated() >= steady);
    // Loading holds what was built, the moments, and what it holds for as long.
    const Footprint built = fold(startup.construction, startup.construction.forward, Phase::init);
    REQUIRE(find(phases, Phase::resume).allocated >=
            built.left.allocated() + sum_of(startup.loading) + sum_of(startup.moments));
    ++drawn;
  }
}

TEST_CASE(
    "a device with just enough memory changes nothing, and a run ends where it has too little") {
  std::mt19937 random(11);
  const int enough = tests::draws(60);
  int drawn = 0;
  while (drawn < enough) {
    const std::optional<Problem> p = tests::Draw(random).problem();
    if (!p || !has_allocator(*p)) continue;
    const Evaluator evaluator(*p);
    const Stage stage = stages(*p).front();
    const StageProgram program = evaluator.stage_program(*p, stage);
    const Startup startup = evaluator.startup(*p, stage, program);
    const std::vector<Pass> order = representative_passes(*p, 0);
    CAPTURE(name_of(p->runtime.kind), p->model.name, p->layout.dp, p->layout.tp, p->layout.pp);
    for (const bool expandable : {false, true}) {
      const AllocatorConfig open{.expandable_segments = expandable};
      const Replay free = replay(program, startup, order, open);
      const Bytes need = free.peak_reserved();
      AllocatorConfig full = open;
      full.capacity = need;
      const Replay squeezed = replay(program, startup, order, full);
      // An expandable segment reserves addresses by what the device has, and with fewer it places
      // blocks otherwise.
      if (!expandable) {
        REQUIRE(!squeezed.out_of_memory);
        REQUIRE(squeezed.peak_reserved() == need);
        REQUIRE(squeezed.peak_allocated() == free.peak_allocated());
      }
      const auto ends_at = [&](Bytes most) {
        return replay(program, startup, order, open, Start::fresh, most).out_of_memory;
      };
      REQUIRE(!ends_at(need));
      REQUIRE(ends_at(need - Bytes{1}));
    }
    ++drawn;
  }
}

// Megatron-LM issue 1746: a rank of five billion parameters, dp 2, allocated 19,128 MiB in
// distrib_optimizer.py while it loaded: two fp32 moments of half of them.
TEST_CASE("Megatron-Core loads a checkpoint into moments that FusedAdam then makes again") {
  Problem p =
      tests::problem(Runtime::megatron, "llama3-8b", {.dp = 2, .zero = ZeroStage::optimizer});
  const Evaluator evaluator(p);
  const Stage stage = stages(p).front();
  const StageProgram program = evaluator.stage_program(p, stage);
  const Startup startup = evaluator.startup(p, stage, program);
  const Bytes moments{2 * 4 * parameter_count(p.model) / 2};
  REQUIRE(sum_of(startup.moments) >= moments);
  REQUIRE(sum_of(startup.moments) <= moments + 1_MiB);
  REQUIRE(sum_of(startup.loading) == sum_of(startup.moments));
  p.training.optimizer = OptimizerKind::sgd;
  REQUIRE(evaluator.startup(p, stage, program).loading.empty());
}
