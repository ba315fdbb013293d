#include "cost_model/program/in_flight_counts.hpp"

#include "cost_model/legality/legality.hpp"
#include "cost_model/program/fold.hpp"
#include "cost_model/remember/layout_pieces.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

TEST_CASE("what a schedule keeps alive together gives the highest moment of its fold") {
  std::mt19937 random(23);
  tests::Draw draw(random);
  int tried = 0;
  for (int i = 0; i < tests::draws(1000); ++i) {
    const std::optional<Problem> p = draw.problem({0});
    if (!p) continue;
    ++tried;
    const Evaluator evaluator(*p);
    const LayoutPieces known = evaluator.pieces(*p);
    for (std::size_t run = 0; run < known.runs(); ++run) {
      const std::size_t stage = known.firsts()[run];
      CAPTURE(p->layout.pp, p->layout.vpp, name_of(p->layout.schedule), stage);
      const Footprint& passes = known.megatron_passes(stage).passes;
      REQUIRE(known.megatron_peak(run) == passes.peak.live.allocated());
      // The optimizer's step starts from what is resident.
      REQUIRE(passes.left.allocated() == Bytes{});
    }
  }
  REQUIRE(tried > (tests::sanitized ? 0 : 50));
}

TEST_CASE("a profile serves all programs whose chunks are alike in the same way") {
  Problem p = problem(Runtime::megatron, "llama3-8b",
                      {.pp = 4, .vpp = 2, .schedule = Schedule::interleaved});
  p.training.global_batch = 16;
  const WeightInventory inventory = weight_inventory(p.model);
  const std::vector<Pass> order = representative_passes(p, 1);
  const auto program = [&] {
    return megatron_passes(p, inventory, megatron_blocks(p), stages(p)[1]);
  };
  const InFlightCounts profile(program(), {0, 0}, order);
  for (const std::int64_t sequence : {512, 4096}) {
    p.training.sequence_length = sequence;
    const StageProgram other = program();
    REQUIRE(other.chunks.front() == other.chunks.back());
    const std::vector<ChunkBytes> sizes{chunk_bytes(other.chunks.front())};
    const std::optional<Bytes> highest = profile.highest(sizes, other.boundary);
    REQUIRE(highest.has_value());
    REQUIRE(*highest == fold_passes(other, order).peak.live.allocated());
  }
  // More in flight must need more.
  const std::vector<ChunkBytes> freeing{{.forward_left = Bytes{-1}, .backward_left = Bytes{1}}};
  REQUIRE(!profile.highest(freeing, Bytes{0}));
}
