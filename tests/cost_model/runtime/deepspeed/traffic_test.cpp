// DeepSpeed's context parallelism exchanges in memory what it sends.
#include "tests/cost_model/program/traffic.hpp"

#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using namespace zeroplan::tests;

// DeepSpeed runtime/sequence_parallel/ulysses_sp.py: nothing of the whole sequence is gathered.
TEST_CASE("Ulysses makes tensors for the heads of a rank, and sends as many bytes") {
  Problem p = problem(Runtime::deepspeed, "llama3-8b",
                      {.dp = 2, .cp = 4, .zero = ZeroStage::parameters}, "H100-80GB");
  p.layout.recompute = GENERATE(Recompute::none, Recompute::full);
  p.training.attention = GENERATE(AttentionKernel::flash, AttentionKernel::unfused);
  const Evaluator evaluator(p);
  const std::vector<Played> record = played_step(p, evaluator, 0);
  CHECK(allocated(record, {"keys and values of the whole sequence"}).count == 0);
  const std::int64_t passes = p.layout.recompute == Recompute::full ? 3 : 2;
  const std::int64_t row = 2 * 4096 / 4;  // a feature of this rank's tokens
  const std::int64_t all = p.model.layers * passes * row * (2 * 4096 + 2 * 1024);
  CHECK(allocated(record,
                  {"queries of this rank's heads", "keys of this rank's heads",
                   "values of this rank's heads", "attention output of this rank's tokens",
                   "query gradient of this rank's tokens", "key gradient of this rank's tokens",
                   "value gradient of this rank's tokens", "output gradient of this rank's heads"})
            .bytes == Bytes{all});
  const auto loads = step_collectives(p, evaluator.weights(), stages(p).front());
  CHECK(sent(loads, {"cp"}, Collective::all_to_all).bytes == Bytes{all});
}
