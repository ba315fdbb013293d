// Bytes that an update moves, counted by hand from what each runtime's optimizer reads and writes.
#include "cost_model/pipeline/optimizer_time.hpp"

#include "cost_model/kernel/memory_bound.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

namespace {

// A parameter that this rank updates.
double bytes_moved(const Problem& p) {
  const WeightInventory inventory = weight_inventory(p.model);
  const Stage stage = stages(p).front();
  const StageElements elements = stage_elements(p, inventory, stage, state_recipe(p).padding);
  const double seconds = optimizer_seconds(p, inventory, stage, elements);
  const Bytes much{std::int64_t{1} << 40};
  const double rate = static_cast<double>(much.count()) /
                      memory_bound_seconds(much, Access::streaming, p.cluster.gpu);
  return seconds * rate / static_cast<double>(elements.shard());
}

}  // namespace

TEST_CASE("DeepSpeed's third stage reads and writes 70 bytes a parameter in its update") {
  Problem p = tests::problem(Runtime::deepspeed, "llama3-8b",
                             {.dp = 8, .zero = ZeroStage::parameters}, "H100-80GB");
  // Moments and master read and written; a 16-bit gradient widened, read; the parameter written from the
  // master, read again; seven passes of 4 bytes for norm and scale; the gradient zeroed.
  CHECK(bytes_moved(p) == Approx(3 * 8 + (2 + 4) + 4 + (2 + 4) + 7 * 4 + 2).epsilon(1e-3));
}
