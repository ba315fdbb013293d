#include "cost_model/program/fold.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "cost_model/program/play.hpp"
#include "cost_model/remember/evaluator.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;

TEST_CASE("folding finds the highest sum of a block's events") {
  BlockWriter w(Bytes{512}, Bytes{512});
  const Tensor kept = w.save("kept", Bytes{1000});  // 1024 as allocated
  const Tensor gone = w.temporary("gone", Bytes{4096});
  w.free(gone);
  w.allocate(Block::output);
  w.begin_backward();
  w.free(Block::output_grad);
  w.free(kept);
  const Block block = w.finish();

  const Footprint forward = fold(block, block.forward, Phase::forward);
  REQUIRE(forward.peak.live.allocated() == Bytes{1024 + 4096});
  REQUIRE(forward.peak.tensor == "gone");
  REQUIRE(forward.left.allocated() == Bytes{1024 + 512});
  REQUIRE(fold(block, block.backward, Phase::backward).left.allocated() == Bytes{-512 - 1024});
  REQUIRE(fold(block, block.backward, Phase::backward, {.output_grad = true}).left.allocated() ==
          Bytes{-1024});
}

TEST_CASE("calls of a step: each block's in each micro-batch, and those of its end") {
  BlockWriter w(Bytes{512}, Bytes{512});
  w.call("tp", Collective::all_gather, Bytes{100});
  w.call("tp", Collective::all_gather, Bytes{});
  w.allocate(Block::output);
  w.begin_backward();
  w.free(Block::output_grad);
  w.call("cp", Collective::send_recv, Bytes{30}, 3);
  const auto layer = folded(w.finish());
  BlockWriter first(Bytes{512}, Bytes{512});
  first.call({"dp", Collective::all_gather, During::step, Bytes{7}});
  first.call("tp", Collective::all_gather, Bytes{100});
  StageProgram program;
  program.chunks.push_back({.runs = {{layer, 5}}, .first_runs = {{folded(first.finish()), 5}}});
  BlockWriter end;
  end.call("dp", Collective::all_reduce, Bytes{40});
  program.step = end.finish();

  const std::vector<Call> calls = fold_calls(program, 4);
  const auto times = [&](const Call& wanted) {
    std::vector<std::int64_t> found;
    for (const Call& call : calls) {
      if (call.is_like(wanted)) found.push_back(call.times);
    }
    return found;
  };
  using List = std::vector<std::int64_t>;
  REQUIRE(calls.size() == 4);
  REQUIRE(times({"tp", Collective::all_gather, During::forward, Bytes{100}}) == List{5 * 4});
  REQUIRE(times({"cp", Collective::send_recv, During::backward, Bytes{30}}) == List{5 * 3 * 3});
  REQUIRE(times({"dp", Collective::all_gather, During::step, Bytes{7}}) == List{5});
  REQUIRE(times({"dp", Collective::all_reduce, During::step, Bytes{40}}) == List{1});
}

// The equality that holds the design together: what is summed up is what happens.
TEST_CASE("fold = play, byte for byte, over random legal layouts") {
  std::mt19937 random(20261120);
  const int enough = tests::draws(2'500);
  int played = 0;
  int without_layers = 0;
  int passing_on = 0;  // without an end of the model, too
  std::map<Schedule, int> by_schedule;
  const auto covers_all = [&] {
    const auto schedules = {Schedule::one_f_one_b, Schedule::interleaved, Schedule::zb_h1,
                            Schedule::zb_h2,       Schedule::zb_v,        Schedule::dualpipe};
    return without_layers >= tests::draws(30) && passing_on >= tests::draws(10) &&
           std::ranges::all_of(schedules,
                               [&](Schedule s) { return by_schedule[s] >= tests::draws(30); });
  };
  for (int i = 0; i < 200'000 && (played < enough || !covers_all()); ++i) {
    const std::optional<Problem> p = tests::Draw(random).problem({0, 0, 1, 1, 2, 3, 3, 4, 6});
    if (!p) continue;
    const Evaluator evaluator(*p);
    const auto all = stages(*p);
    const std::int64_t rank =
        std::uniform_int_distribution<std::int64_t>(0, p->layout.pp - 1)(random);
    const StageProgram program = evaluator.stage_program(*p, all[static_cast<std::size_t>(rank)]);
    CAPTURE(name_of(p->runtime.kind), p->model.name, p->layout.tp, p->layout.pp, p->layout.vpp,
            rank, micro_batches(*p), name_of(p->layout.recompute), name_of(p->layout.zero),
            name_of(p->layout.schedule));

    const auto whole = passes(*p, rank, micro_batches(*p));
    const Playback played_step = play_step(program, whole);
    const Moment folded = fold_step(program, whole);
    REQUIRE(folded.live.allocated() == played_step.peak.live.allocated());
    REQUIRE(folded.live == played_step.peak.live);
    // A few micro-batches tell as much as all of them.
    const Moment steady = fold_step(program, representative_passes(*p, rank));
    REQUIRE(steady.live.allocated() == folded.live.allocated());
    // Nothing leaks: what is left is what was resident.
    Bytes resident;
    for (const TensorSpec& spec : program.resident) resident += spec.bytes;
    REQUIRE(played_step.left.allocated() == resident);
    ++played;
    ++by_schedule[p->layout.schedule];
    const std::vector<Stage> chunks = chunks_of(all[static_cast<std::size_t>(rank)]);
    without_layers += std::ranges::any_of(chunks, [](const Stage& c) { return !layer_count(c); });
    passing_on += std::ranges::any_of(
        chunks, [](const Stage& c) { return !layer_count(c) && !c.embedding && !c.head; });
  }
  REQUIRE(played >= enough);
  REQUIRE(covers_all());
}
