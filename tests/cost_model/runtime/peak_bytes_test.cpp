#include <random>

#include "cost_model/answer/stage_memory.hpp"
#include "tests/catch.hpp"
#include "tests/cost_model/network/loads.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;

namespace {

// Of every stage, what a search asks for is what the folded program says.
void require_same(const Problem& p, const Evaluator& evaluator) {
  const LayoutPieces known = evaluator.pieces(p);
  for (std::size_t run = 0; run < known.runs(); ++run) {
    const std::size_t i = known.firsts()[run];
    CAPTURE(name_of(p.runtime.kind), p.model.name, p.layout.dp, p.layout.tp, p.layout.pp,
            p.layout.vpp, p.layout.hsdp, i, micro_batches(p), name_of(p.layout.recompute),
            name_of(p.layout.zero), name_of(p.layout.schedule));
    const StageMemory folded =
        stage_memory(p, evaluator, known.stages()[i], static_cast<std::int64_t>(i));
    const StageBytes whole = stage_bytes(folded);
    const StageBytes weighed = stage_bytes(known.point(), run);
    REQUIRE(weighed.reserved == whole.reserved);
    REQUIRE(weighed.outside == whole.outside);
    REQUIRE(weighed.states == whole.states);
    const Stage& stage = known.stages()[i];
    REQUIRE(tests::sorted(evaluator.update_loads(p, stage)) ==
            tests::sorted(update_collectives(p, evaluator.weights(), stage)));
    const Bytes least = known.point().least_of_step(run).with({});
    REQUIRE(least <= folded.memory.allocated());
    const Evaluator fresh(p);
    REQUIRE(least == fresh.pieces(p).point().least_of_step(run).with({}));
  }
}

}  // namespace

// A loss in parts leaves the output layer sharded, which the backward pass before it gathered.
TEST_CASE("a head whose forward pass leaves less than it finds is weighed, not folded") {
  Problem p = tests::problem(Runtime::fsdp2, "llama3-70b",
                             {.dp = 8,
                              .tp = 2,
                              .pp = 8,
                              .zero = ZeroStage::parameters,
                              .sequence_parallel = true,
                              .recompute = Recompute::full},
                             "H100-80GB");
  p.layout.vpp = GENERATE(1, 2);
  if (p.layout.vpp > 1) p.layout.schedule = Schedule::interleaved;
  REQUIRE_FALSE(first_violation(p));
  const Evaluator evaluator(p);
  const std::vector<Stage> all = stages(p);
  const ModelStates states = model_states(p, evaluator.weights(), all.back());
  CHECK(evaluator.highest_of_step(p, all.back(), 7, states).has_value());
  require_same(p, evaluator);
}

// Of every parameter a half in 16 bits, gathered, and a gradient in 32, whole on each rank.
TEST_CASE("a pipeline of FSDP2 needs what it gathers and what it will reduce, before any block") {
  Problem p = tests::problem(Runtime::fsdp2, "llama3-70b",
                             {.dp = 32, .pp = 4, .zero = ZeroStage::parameters}, "H100-80GB");
  REQUIRE_FALSE(first_violation(p));
  const Evaluator evaluator(p);
  const Stage stage = stages(p)[1];
  const ModelStates states = model_states(p, evaluator.weights(), stage);
  std::int64_t elements = 0;
  for (const Weight& w : evaluator.weights().layer(LayerKind::dense)) elements += w.elements();
  const Bytes whole{6 * layer_count(stage) * elements};
  const LayoutPieces known = evaluator.pieces(p);
  const Bytes least = known.point().least_of_step(known.run_of(1)).with({});
  CHECK(least >= whole + states.parameters + states.optimizer_states);
  CHECK(least <= evaluator.highest_of_step(p, stage, 1, states));
}

TEST_CASE("what a search weighs is what the fold finds, whatever was weighed before") {
  std::mt19937 random(20261122);
  tests::Draw draw(random);
  const int enough = tests::draws(150);
  int settings = 0;
  int weighed = 0;
  for (int i = 0; i < 20'000 && settings < enough; ++i) {
    // FSDP2, DDP, DeepSpeed, zeroplan and nanotron.
    const std::optional<Problem> first = draw.problem({1, 1, 1, 2, 3, 5, 6, 6});
    if (!first) continue;
    ++settings;
    const Evaluator evaluator(*first);
    require_same(*first, evaluator);
    // Other layouts of the model with the same settings, close to each other.
    for (int other = 0; other < 40; ++other) {
      Problem p = *first;
      p.layout.tp = draw.pick({1, 2, 4});
      p.layout.pp = draw.pick({1, 2, 4});
      p.layout.dp = draw.pick({1, 2, 4});
      p.layout.hsdp = draw.pick({0, 0, 2});
      p.layout.micro_batch = draw.pick({1, 2});
      p.layout.zero = static_cast<ZeroStage>(draw.pick({0, 1, 2, 3}));
      p.layout.recompute = static_cast<Recompute>(draw.pick({0, 1, 2}));
      p.layout.loss_chunks = draw.pick({0, 1, 8});
      code_of(p).take_layout(first->runtime, p.layout, p.runtime);
      p.layout.sequence_parallel = p.layout.tp > 1 && draw.coin();
      p.layout.vpp = p.layout.pp > 1 ? draw.pick({1, 2, 3}) : 1;
      p.layout.schedule = p.layout.vpp > 1                 ? Schedule::interleaved
                          : p.layout.pp > 1 && draw.coin() ? Schedule::gpipe
                                                           : Schedule::one_f_one_b;
      p.cluster.gpus = world_size(p.layout);
      p.training.global_batch = p.layout.dp * p.layout.micro_batch * draw.pick({2, 4, 8, 12});
      if (first_violation(p)) continue;
      ++weighed;
      require_same(p, evaluator);
    }
  }
  REQUIRE(settings == enough);
  REQUIRE(weighed > 5 * enough);
}
