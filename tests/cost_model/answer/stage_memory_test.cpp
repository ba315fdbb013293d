// What a stage needs at most, asked with a limit, is what it needs.
#include "cost_model/answer/stage_memory.hpp"

#include <random>

#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;

TEST_CASE("a stage may need exactly what it needs and not a byte less, over random legal layouts") {
  std::mt19937 random(17);
  tests::Draw draw(random);
  for (int done = 0; done < tests::draws(60);) {
    const auto p = draw.problem();
    if (!p) continue;
    const Evaluator evaluator(*p);
    const Stage stage = stages(*p).front();
    const StageMemory summed = stage_memory(*p, evaluator, stage, 0);
    StageMemory played = summed;
    play_allocator(*p, evaluator, stage, played);
    const Bytes needed = stage_bytes(played).device();
    if (needed > p->cluster.gpu.memory) continue;
    ++done;
    CAPTURE(name_of(p->runtime.kind), p->model.name, needed.count());
    StageMemory limited = summed;
    REQUIRE(play_up_to(needed, *p, evaluator, stage, limited));
    REQUIRE(stage_bytes(limited).device() == needed);
    REQUIRE(limited.unsplit_blocks == played.unsplit_blocks);
    REQUIRE_FALSE(play_up_to(needed - Bytes{1}, *p, evaluator, stage, limited));
  }
}
