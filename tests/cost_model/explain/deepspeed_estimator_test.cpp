#include "cost_model/explain/deepspeed_estimator.hpp"

#include "cost_model/rank/weights.hpp"

#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

// The figures of the document are rows of script/papers; here is which problems are asked.
TEST_CASE("DeepSpeed's estimator is asked about what it knows") {
  Problem p =
      tests::problem(Runtime::deepspeed, "llama3-8b", {.dp = 16, .zero = ZeroStage::parameters});
  const std::int64_t parameters = parameter_count(p.model);
  const std::int64_t largest = p.model.vocab_size * p.model.hidden_size;
  REQUIRE(deepspeed_estimator(p)->gpu == Bytes{4 * largest + 18 * parameters / 16});
  REQUIRE(deepspeed_estimator(p)->host_a_node == Bytes{8 * 4 * largest * 3 / 2});
  p.layout.offload = Offload::parameters;
  REQUIRE(deepspeed_estimator(p)->gpu == Bytes{4 * largest});
  REQUIRE(deepspeed_estimator(p)->host_a_node == Bytes{18 * parameters / 2 * 3 / 2});
  p.layout.zero = ZeroStage::gradients;
  p.layout.offload = Offload::none;
  REQUIRE(deepspeed_estimator(p)->gpu == Bytes{4 * parameters + parameters});
  p.layout.zero = ZeroStage::optimizer;
  REQUIRE_FALSE(deepspeed_estimator(p));
  p.layout.zero = ZeroStage::gradients;
  p.runtime.kind = Runtime::megatron;
  REQUIRE_FALSE(deepspeed_estimator(p));
}
