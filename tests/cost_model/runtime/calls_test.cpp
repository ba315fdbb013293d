// What the blocks of a step send, event by event in the order of its passes, is what answers say is
// sent: random problems of every runtime but Megatron-Core, whose end of a step stands apart.
#include <random>

#include "cost_model/network/load_list.hpp"
#include "cost_model/program/schedule.hpp"
#include "cost_model/remember/evaluator.hpp"
#include "tests/catch.hpp"
#include "tests/cost_model/network/loads.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;
using namespace zeroplan::tests;

namespace {

BackwardPart part_of(PassKind kind) {
  return kind == PassKind::input_gradient    ? BackwardPart::input_gradient
         : kind == PassKind::weight_gradient ? BackwardPart::weight_gradient
                                             : BackwardPart::whole;
}

// Each call as often as its event comes, as part of the pass in which it comes unless it says
// otherwise.
std::vector<Call> played_calls(const StageProgram& program, const std::vector<Pass>& order) {
  std::vector<Call> sum;
  const auto play = [&](const Block& block, const std::vector<Event>& events, BackwardPart part,
                        std::int64_t times) {
    for (const Event& event : events) {
      if (!event.calls() || !belongs(event, part)) continue;
      add(sum, block.calls.at(static_cast<std::size_t>(event.index)), times);
    }
  };
  const std::int32_t last = last_micro_batch(order);
  for (const Pass& pass : order) {
    const ChunkProgram& chunk = program.chunks.at(static_cast<std::size_t>(pass.chunk));
    for (const Run& run : chunk.runs_of(pass.micro_batch, last)) {
      const Block& block = run.block->block();
      if (pass.kind == PassKind::forward) {
        play(block, block.forward, BackwardPart::whole, run.count);
      } else {
        play(block, block.backward, part_of(pass.kind), run.count);
      }
    }
  }
  for (const Call& call : program.step.calls) add(sum, of_step(call));
  return sum;
}

auto loads_of_calls(const Problem& p, const std::vector<Call>& calls) {
  LoadList list(p);
  list.add_calls(calls);
  return sorted(list.take());
}

std::vector<CollectiveLoad> without_messages(std::vector<CollectiveLoad> loads) {
  std::erase_if(loads, [](const CollectiveLoad& load) { return load.group.name == "pp"; });
  return loads;
}

std::optional<Problem> draw_program(Draw& draw) {
  std::optional<Problem> p = draw.problem({1, 3, 3, 3, 4, 5, 6, 6});
  if (!p) return p;
  DeepspeedSettings& set = p->runtime.deepspeed;
  if (p->runtime.kind == Runtime::deepspeed) {
    set.reduce_bucket_size = draw.pick({500'000'000, 1'000'000});
    set.stage3_prefetch_bucket_size = draw.pick({50'000'000, 1'000'000});
    set.quantized_weights = draw.coin();
    set.quantized_gradients = draw.coin();
    set.hpz_partition_size = draw.pick({0, 0, 2});
    p->layout.hsdp = set.hpz_partition_size > 0 ? 0 : draw.pick({0, 0, 2});
  }
  if (draw.coin() && p->layout.tp < 4) p->model = find_model("llama3.2-1b").spec;
  if (first_violation(*p)) return {};
  return p;
}

void require_as_said(const Problem& p) {
  const Evaluator evaluator(p);
  const std::vector<Stage> all = stages(p);
  for (std::size_t stage = 0; stage < all.size(); ++stage) {
    CAPTURE(name_of(p.runtime.kind), p.model.name, p.layout.dp, p.layout.tp, p.layout.pp,
            p.layout.vpp, p.layout.cp, p.layout.ep, p.layout.hsdp, stage, micro_batches(p),
            name_of(p.layout.zero), name_of(p.layout.schedule), p.layout.sequence_parallel,
            name_of(p.layout.recompute));
    const std::vector<Call> played =
        played_calls(evaluator.stage_program(p, all[stage]),
                     passes(p, static_cast<std::int64_t>(stage), micro_batches(p)));
    REQUIRE(loads_of_calls(p, calls_of(played, true)) ==
            sorted(update_collectives(p, evaluator.weights(), all[stage])));
    REQUIRE(loads_of_calls(p, calls_of(played, false)) ==
            sorted(without_messages(pass_collectives(p, evaluator.weights(), all[stage]))));
  }
}

}  // namespace

TEST_CASE("what a program's events send is what a step is said to send") {
  std::mt19937 random(20261124);
  Draw draw(random);
  const int enough = draws(400);
  int seen = 0;
  for (int i = 0; i < 100'000 && seen < enough; ++i) {
    const std::optional<Problem> p = draw_program(draw);
    if (!p) continue;
    ++seen;
    require_as_said(*p);
  }
  REQUIRE(seen == enough);
}

// Random layouts are rarely data-parallel alone.
TEST_CASE("and so it is of DDP") {
  const std::string_view model = GENERATE("llama3.2-1b", "gpt2-xl", "mixtral-8x7b");
  const Recompute recompute = GENERATE(Recompute::none, Recompute::full);
  Problem p = problem(Runtime::ddp, model, {.dp = 8, .recompute = recompute});
  p.training.sequence_length = 512;
  REQUIRE_FALSE(first_violation(p));
  REQUIRE_FALSE(update_collectives(p, weight_inventory(p.model), stages(p).front()).empty());
  require_as_said(accumulating(p, 3));
}
