// How long the passes of a chunk are.
#include "cost_model/pipeline/stage_time.hpp"

#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

// Of half the layers, without an end.
PassTime pass_of(std::int64_t micro_batch) {
  Problem p = tests::problem(Runtime::megatron, "gpt2-xl", {.pp = 2, .schedule = Schedule::zb_h1});
  p.training.sequence_length = 16;
  p.layout.micro_batch = micro_batch;
  Stage chunk = stages(p).front();
  chunk.embedding = false;
  return chunk_time(p, Evaluator(p).block_times(p), chunk).pass;
}

}  // namespace

// Each direction's ring runs beside that direction's attention.
TEST_CASE("what a ring adds to a pass is what its own attention leaves of it") {
  for (const std::int64_t length : {8'192, 32'768, 131'072}) {
    Problem p = tests::problem(Runtime::megatron, "llama3-8b", {.cp = 16}, "H100-80GB");
    p.training.sequence_length = length;
    const Evaluator evaluator(p);
    const BlockTimes blocks = evaluator.block_times(p);
    Stage chunk = stages(p).front();
    chunk.embedding = chunk.head = false;
    const ChunkTime time = chunk_time(p, blocks, chunk);
    const TimedBlock& layer = blocks.layer(LayerKind::dense);
    REQUIRE(layer.loads.ring.backward > 0);
    const auto layers = static_cast<double>(layer_count(chunk));
    const auto exposed = [&](double ring, double attention) {
      return exposed_beside(layers * ring, layers * attention, p.cluster.gpu);
    };
    CAPTURE(length);
    CHECK(time.waited.forward ==
          Approx(layers * layer.loads.waited.forward +
                 exposed(layer.loads.ring.forward, layer.kernels.forward.attention)));
    CHECK(time.waited.backward ==
          Approx(layers * layer.loads.waited.backward +
                 exposed(layer.loads.ring.backward, layer.kernels.input_gradient.attention)));
  }
}

TEST_CASE("a host that is late delays both parts of a backward pass") {
  const PassTime some = pass_of(1), twice = pass_of(2);
  // Twice the tokens take as long: kernels wait for their host, whichever part they are of.
  CHECK(twice.backward() == Approx(some.backward()));
  CHECK(twice.weight_gradient > 0.2 * twice.backward());
  CHECK(twice.weight_gradient < 0.6 * twice.backward());
  const PassTime busy = pass_of(1024), busier = pass_of(2048);
  CHECK(busier.weight_gradient > 1.8 * busy.weight_gradient);
}
