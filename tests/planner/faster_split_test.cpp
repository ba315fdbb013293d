#include "planner/sweep/faster_split.hpp"

#include <algorithm>
#include <numeric>

#include "cost_model/answer/estimate.hpp"
#include "cost_model/answer/step_time.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/random_layout.hpp"

using namespace zeroplan;

namespace {

double seconds(const Problem& p, const Stage& stage) {
  const Evaluator evaluator(p);
  const PassTime pass = chunk_time(p, evaluator.block_times(p), stage).pass;
  return pass.forward + pass.backward();
}

Stage stage_of(const Problem& p, std::int64_t rank, LayerRange layers) {
  return {.chunks = {layers}, .embedding = rank == 0, .head = rank + 1 == p.layout.pp};
}

// An even split: its head takes as long as several layers.
Problem gemma() {
  Problem p = tests::problem(Runtime::megatron, "gemma2-2b", {.dp = 4, .pp = 2}, "H100-80GB");
  p.training.global_batch = 64;
  return p;
}

}  // namespace

TEST_CASE("a split that is said to be faster is faster where the runtime can be told to split so") {
  const Problem plan = gemma();
  REQUIRE(!first_violation(plan));
  const std::optional<FasterSplit> split = faster_split(plan, Evaluator(plan));
  REQUIRE(split);
  const std::vector<std::int64_t>& sizes = split->partition.sizes;
  CAPTURE(sizes);
  REQUIRE(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}) == plan.model.layers);
  REQUIRE(sizes.back() < sizes.front());
  Problem told = plan;
  told.runtime.megatron.decoder_first_pipeline_num_layers = sizes.front();
  told.runtime.megatron.decoder_last_pipeline_num_layers = sizes.back();
  REQUIRE(!first_violation(told));
  CHECK(step_seconds(told, Evaluator(told)) < step_seconds(plan, Evaluator(plan)));
  CHECK(!faster_split(told, Evaluator(told)));
}

TEST_CASE("stages of a faster split are faster and fit") {
  std::mt19937 random(5);
  tests::Draw draw(random);
  int found = 0, balanced = 0;
  const int all = 3000, some = tests::draws(all);
  for (int i = 0; i < some || (found == 0 && i < all); ++i) {
    std::optional<Problem> p = draw.problem();
    if (!p || p->layout.pp == 1) continue;
    const Evaluator evaluator(*p);
    const std::optional<FasterSplit> split = faster_split(*p, evaluator);
    ++(split ? found : balanced);
    if (!split) continue;
    double slowest_now = 0;
    for (const Stage& stage : stages(*p)) slowest_now = std::max(slowest_now, seconds(*p, stage));
    REQUIRE(split->slowest_now == slowest_now);
    double slowest = 0;
    std::int64_t rank = 0, first = 0;
    for (const std::int64_t size : split->partition.sizes) {
      const Stage stage = stage_of(*p, rank, {first, first + size});
      slowest = std::max(slowest, seconds(*p, stage));
      const StageBytes bytes = stage_bytes(stage_memory(*p, evaluator, stage, rank));
      REQUIRE(bytes.device() + half_band(*p, bytes) <= p->cluster.gpu.memory);
      ++rank;
      first += size;
    }
    REQUIRE(rank == p->layout.pp);
    REQUIRE(first == p->model.layers);
    REQUIRE(split->partition.slowest == slowest);
    REQUIRE(slowest < 0.99 * slowest_now);
  }
  CHECK(found > 0);
  if (!tests::sanitized) CHECK(balanced > 0);
}
