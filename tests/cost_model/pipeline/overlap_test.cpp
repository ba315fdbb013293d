// Behind what collectives run.
#include "cost_model/pipeline/overlap.hpp"

#include "tests/catch.hpp"
#include "tests/cost_model/network/loads.hpp"

using namespace zeroplan;
using namespace zeroplan::tests;

namespace {

std::vector<Behind> behind(const Problem& p) {
  std::vector<Behind> list;
  for (const CollectiveLoad& load : loads_of(p)) list.push_back(hidden_behind(p, load));
  return list;
}

}  // namespace

// Reduction, then gather of what was updated. Micro-batches before the last reduce nothing in stage
// 1 (DeepSpeed runtime/zero/stage_1_and_2.py reduce_ready_partitions_and_remove_grads).
TEST_CASE("overlap_comm hides stage 1's reduction behind the last backward pass, sent once") {
  Problem p = problem(Runtime::deepspeed, "llama3-8b", {.dp = 8, .zero = ZeroStage::optimizer});
  p = accumulating(p, 4);
  p.runtime.deepspeed.overlap_comm = false;
  const std::int64_t sent = sent_all(p);
  CHECK(behind(p) == std::vector{Behind::nothing, Behind::nothing});
  p.runtime.deepspeed.overlap_comm = true;
  CHECK(sent_all(p) == sent);
  CHECK(behind(p) == std::vector{Behind::last_backward, Behind::nothing});
  // BF16_Optimizer has no hooks that reduce.
  p.runtime.deepspeed.fp32_grad_accumulation = true;
  CHECK(behind(p) == std::vector{Behind::nothing, Behind::nothing});
  p.runtime.deepspeed.fp32_grad_accumulation = false;
  p.layout.zero = ZeroStage::gradients;
  CHECK(behind(p) == std::vector{Behind::pass, Behind::nothing});
}
