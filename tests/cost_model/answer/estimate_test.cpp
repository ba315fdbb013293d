#include "cost_model/answer/estimate.hpp"

#include <random>

#include "cost_model/legality/legality.hpp"
#include "cost_model/question/runtime_code.hpp"
#include "cost_model/states/overheads.hpp"
#include "tests/catch.hpp"
#include "tests/draws.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

Estimate estimate_of(const Problem& p) {
  return estimate(p, Evaluator(p));
}

}  // namespace

TEST_CASE("allocated, reserved and device are running sums of the rows") {
  MemoryBreakdown m;
  std::int64_t value = 1;
  for (std::size_t i = 0; i < names<Category>().size(); ++i, value *= 2)
    m[static_cast<Category>(i)] = Bytes{value};
  REQUIRE(m.allocated() == Bytes{0xff});  // the first eight
  REQUIRE(m.reserved() == Bytes{0x1ff});  // and fragmentation
  REQUIRE(m.device() == Bytes{0x7ff});    // and communicators and context
}

TEST_CASE("the worst stage decides, and names itself") {
  const Estimate e = estimate_of(
      problem(Runtime::megatron, "llama3-70b", {.tp = 4, .pp = 4, .sequence_parallel = true}));
  REQUIRE(e.stages.size() == 4);
  for (const StageMemory& s : e.stages) REQUIRE(s.memory.device() <= e.device());
  REQUIRE(e.headroom() == e.capacity - e.device());
  REQUIRE(e.low < e.device());
  REQUIRE(e.device() < e.high);
}

TEST_CASE("the verdict follows the band") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.dp = 8, .zero = ZeroStage::optimizer});
  const Estimate free = estimate_of(p);
  const auto with_capacity = [&](Bytes capacity) {
    p.cluster.gpu.memory = capacity;
    return estimate_of(p);
  };
  REQUIRE(with_capacity(free.high).verdict == Verdict::fits);
  REQUIRE(with_capacity(free.device()).verdict == Verdict::tight);
  REQUIRE(with_capacity(free.device()).fit_probability == Approx(0.5));
  REQUIRE(free.high - free.device() == free.device() - free.low);
  REQUIRE(with_capacity(free.low - Bytes{1}).verdict == Verdict::does_not_fit);
}

TEST_CASE("half a band is rounded up to a byte, so that what fits does so with all of it") {
  const Problem p = problem(Runtime::megatron, "llama3-8b", {});
  const MemoryBand band = code_of(p).memory_band;
  for (const std::int64_t bytes : std::vector<std::int64_t>{1, 7, 1'000'003, 80'000'000'001}) {
    CAPTURE(bytes);
    const Bytes half = half_band(p, {.reserved = Bytes{bytes}, .states = Bytes{bytes}});
    const double exact = band.reserved * static_cast<double>(bytes);
    CHECK(static_cast<double>(half.count()) >= exact);
    CHECK(static_cast<double>(half.count()) < exact + 1);
  }
}

TEST_CASE("textbook states without a shape have no band") {
  Problem p = problem(Runtime::zero_paper, "llama3-8b", {.dp = 8, .zero = ZeroStage::parameters});
  p.model.layers = 0;
  const Estimate e = estimate_of(p);
  REQUIRE(e.low == e.high);
  const auto with_capacity = [&](Bytes capacity) {
    p.cluster.gpu.memory = capacity;
    return estimate_of(p);
  };
  const Estimate filled = with_capacity(e.device());
  REQUIRE(filled.verdict == Verdict::fits);
  REQUIRE(filled.fit_probability == 1);
  const Estimate over = with_capacity(e.device() - Bytes{1});
  REQUIRE(over.verdict == Verdict::does_not_fit);
  REQUIRE(over.fit_probability == 0);
}

TEST_CASE("groups that reach past a node are known as such") {
  const Problem p = problem(Runtime::megatron, "llama3-70b", {.dp = 2, .tp = 8, .pp = 2});
  const auto groups = process_groups(p);
  REQUIRE(groups.size() == 3);
  REQUIRE(groups[0].name == "tp");
  REQUIRE_FALSE(groups[0].spans_nodes);
  REQUIRE(groups[1].spans_nodes);
  REQUIRE(groups[2].spans_nodes);
}

TEST_CASE("over random legal layouts rows are whole and more is never less") {
  std::mt19937 random(11);
  const std::string_view models[] = {"llama3-8b", "llama3-70b", "mixtral-8x7b", "deepseek-v2-lite",
                                     "gpt2-xl"};
  const auto pick = [&](std::initializer_list<std::int64_t> list) {
    return *(list.begin() +
             std::uniform_int_distribution<long>(0, static_cast<long>(list.size()) - 1)(random));
  };
  int tried = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto runtime = static_cast<Runtime>(pick({0, 1, 2, 3, 4, 5}));
    Layout layout{.dp = pick({1, 2, 4, 8}),
                  .tp = pick({1, 2, 4, 8}),
                  .pp = pick({1, 2, 4}),
                  .cp = pick({1, 1, 2})};
    layout.ep = pick({1, 1, 2, 4});
    layout.micro_batch = pick({1, 2});
    layout.zero = static_cast<ZeroStage>(pick({0, 1, 2, 3}));
    layout.sequence_parallel = pick({0, 1}) == 1;
    layout.recompute = static_cast<Recompute>(pick({0, 1, 2}));
    Problem p = problem(runtime, models[pick({0, 1, 2, 3, 4})], layout);
    p.training.sequence_length = 1024;
    if (first_violation(p)) continue;
    ++tried;
    CAPTURE(name_of(runtime), p.model.name, layout.dp, layout.tp, layout.pp, layout.cp, layout.ep,
            name_of(layout.zero), name_of(layout.recompute));
    const Estimate e = estimate_of(p);
    for (const StageMemory& s : e.stages) {
      Bytes sum;
      for (std::size_t c = 0; c < names<Category>().size(); ++c) {
        REQUIRE(s.memory[static_cast<Category>(c)] >= Bytes{});
        sum += s.memory[static_cast<Category>(c)];
      }
      REQUIRE(sum == s.memory.device());
    }
    Problem longer = p;
    longer.training.sequence_length *= 2;
    if (!first_violation(longer)) REQUIRE(estimate_of(longer).device() >= e.device());
    if (layout.recompute == Recompute::none) {
      Problem recomputed = p;
      recomputed.layout.recompute = Recompute::full;
      const std::int64_t layers = layer_count(stages(p).front());
      // With one layer a stage there is nothing to save, only an input to keep besides; nor where
      // the optimizer's step needs most, which checkpoints around experts keep theirs through.
      const bool in_step = e.peak().phase == Phase::optimizer_step;
      if (layers > 2 && !in_step && !first_violation(recomputed))
        REQUIRE(estimate_of(recomputed).device() <= e.device());
    }
  }
  REQUIRE(tried > 100);
}

TEST_CASE("an offloaded optimizer takes no GPU memory at the start either") {
  Problem p = problem(Runtime::megatron, "llama3-8b",
                      {.dp = 2, .tp = 2, .zero = ZeroStage::optimizer, .sequence_parallel = true});
  const Evaluator evaluator(p);
  const Bytes kept = played_estimate(p, evaluator).device();
  p.layout.offload = Offload::optimizer;
  const Estimate offloaded = played_estimate(p, evaluator);
  // Master parameters and moments: 12 bytes an element, over two ranks.
  const Bytes states{12 * parameter_count(p.model) / (2 * 2)};
  REQUIRE(kept - offloaded.device() > Bytes{states.count() / 10 * 8});
  REQUIRE(offloaded.peak().memory[Category::fragmentation] < Bytes{states.count() / 4});
}

TEST_CASE("no stage holds more than the one that is said to be worst") {
  const auto first_is_worst = [] {
    Problem p = problem(
        Runtime::nanotron, "qwen2.5-32b",
        {.dp = 4, .tp = 4, .pp = 2, .zero = ZeroStage::optimizer, .sequence_parallel = true},
        "H100-80GB");
    p.training.global_batch = 976;
    return p;
  };
  // The last stage allocates a little less, and wastes 28 % of it.
  const auto last_is_worst = [] {
    Problem p = problem(Runtime::megatron, "llama3-70b",
                        {.dp = 4,
                         .tp = 4,
                         .pp = 2,
                         .micro_batch = 8,
                         .zero = ZeroStage::optimizer,
                         .sequence_parallel = true,
                         .recompute = Recompute::full});
    p.training.global_batch = 992;
    return p;
  };
  for (const Problem& p : {first_is_worst(), last_is_worst()}) {
    REQUIRE(!first_violation(p));
    const Evaluator evaluator(p);
    const Estimate played = played_estimate(p, evaluator);
    for (StageMemory stage : played.stages) {
      play_allocator(p, evaluator, stages(p)[static_cast<std::size_t>(stage.stage)], stage);
      CAPTURE(p.model.name, stage.stage);
      CHECK(stage.memory.device() <= played.device());
    }
  }
}

// Whichever of both parts of the band all of the bytes are in.
TEST_CASE("no plan that fits needs more than the most that fits") {
  constexpr Bytes capacity{std::int64_t{80'000'000'000}};
  for (const Runtime runtime : tests::runtimes()) {
    const Problem p = problem(runtime, "llama3-8b", {.dp = 8}, "H100-80GB");
    const Bytes most = most_that_fits(p.runtime, capacity);
    for (const bool inside : {false, true}) {
      const auto of = [&](Bytes all) {
        return inside ? StageBytes{.reserved = all, .outside = {}}
                      : StageBytes{.reserved = {}, .outside = all};
      };
      std::int64_t least = 0;
      for (std::int64_t step = std::int64_t{1} << 36; step > 0; step /= 2) {
        const Bytes all{least + step};
        if (all + half_band(p, of(all)) <= capacity) least += step;
      }
      CAPTURE(name_of(runtime), inside, least);
      CHECK(Bytes{least} <= most);
    }
  }
}

TEST_CASE("no replay undercuts its floor, in bytes or in verdict") {
  std::mt19937 random(41);
  const auto pick = [&](auto list) { return *(list.begin() + random() % list.size()); };
  int tried = 0;
  for (int i = 0; i < tests::draws(250); ++i) {
    const auto runtime = pick(std::initializer_list{Runtime::megatron, Runtime::fsdp2,
                                                    Runtime::deepspeed, Runtime::nanotron});
    Layout layout{.dp = pick(std::initializer_list<std::int64_t>{1, 2, 4}),
                  .tp = pick(std::initializer_list<std::int64_t>{1, 2, 4}),
                  .pp = pick(std::initializer_list<std::int64_t>{1, 2, 4})};
    layout.zero = static_cast<ZeroStage>(random() % 4);
    layout.recompute = random() % 2 == 0 ? Recompute::none : Recompute::full;
    Problem p = problem(runtime, "llama3-8b", layout);
    p.training.sequence_length = 1024;
    p.training.optimizer = static_cast<OptimizerKind>(random() % 3);
    if (first_violation(p)) continue;
    // Capacities about what the layout needs: there a verdict can go either way.
    const Bytes need = played_estimate(p, Evaluator(p)).device();
    p.cluster.gpu.memory = Bytes{need.count() / 100 * (80 + static_cast<int>(random() % 50))};
    CAPTURE(name_of(runtime), layout.dp, layout.tp, layout.pp, name_of(layout.zero),
            name_of(p.training.optimizer), p.cluster.gpu.memory.count());
    const Evaluator evaluator(p);
    const WorstStage floor = floor_of_replay(p, evaluator);
    const Estimate played = played_estimate(p, evaluator);
    REQUIRE(floor.device <= played.device());
    REQUIRE(floor.verdict <= played.verdict);
    REQUIRE(played_where_it_fits(p, evaluator).has_value() == (played.verdict == Verdict::fits));
    ++tried;
  }
  REQUIRE(tried > tests::draws(50));
}
