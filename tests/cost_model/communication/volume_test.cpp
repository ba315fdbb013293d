#include "cost_model/communication/volume.hpp"

#include <algorithm>
#include <random>

#include "cost_model/legality.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

std::vector<CollectiveLoad> loads_of(const Problem& p, std::size_t stage = 0) {
  return step_collectives(p, weight_inventory(p.model), stages(p).at(stage));
}

// Bytes sent in one step by the loads that `wanted` takes.
std::int64_t sent(const std::vector<CollectiveLoad>& loads, auto wanted) {
  std::int64_t bytes = 0;
  for (const CollectiveLoad& load : loads) {
    if (wanted(load)) bytes += sent_bytes_per_step(load).count();
  }
  return bytes;
}

std::int64_t sent_in(const std::vector<CollectiveLoad>& loads, std::string_view group) {
  return sent(loads, [&](const CollectiveLoad& l) { return l.group.name == group; });
}

std::int64_t sent_all(const Problem& p) {
  return sent(loads_of(p), [](const CollectiveLoad&) { return true; });
}

Problem accumulating(Problem p, std::int64_t times) {
  p.training.global_batch *= times;
  return p;
}

}  // namespace

TEST_CASE("ZeRO sends 2, 2, 2 and 3 Psi elements (its section 7)") {
  const auto [zero, psi] = GENERATE(table<ZeroStage, std::int64_t>({{ZeroStage::none, 2},
                                                                    {ZeroStage::optimizer, 2},
                                                                    {ZeroStage::gradients, 2},
                                                                    {ZeroStage::parameters, 3}}));
  const std::int64_t parameters = 8'030'261'248;  // of Llama 3 8B, a multiple of 64
  for (const Runtime runtime : {Runtime::zero_paper, Runtime::zeroplan, Runtime::deepspeed}) {
    const Problem p = problem(runtime, "llama3-8b", {.dp = 64, .zero = zero});
    const std::int64_t elements = sent_all(p) / 2;
    if (runtime == Runtime::zero_paper) REQUIRE(elements == psi * parameters / 64 * 63);
    // The others pad parts, by up to N elements a call.
    REQUIRE(static_cast<double>(elements) ==
            Approx(static_cast<double>(psi * parameters) * 63 / 64).epsilon(1e-5));
  }
  // For many ranks (N-1)/N is 1.
  const Problem many = problem(Runtime::zero_paper, "llama3-8b", {.dp = 4096, .zero = zero});
  REQUIRE(static_cast<double>(sent_all(many)) ==
          Approx(2. * static_cast<double>(psi * parameters)).epsilon(3e-4));
}

TEST_CASE("Megatron reduces fp32 sums and gathers 16-bit parameters, once a step") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.dp = 64, .zero = ZeroStage::optimizer});
  const std::int64_t full =
      stage_elements(p, weight_inventory(p.model), stages(p)[0], Padding::aligned_buffer).full();
  REQUIRE(sent_all(p) == (4 + 2) * full / 64 * 63);
  p.layout.zero = ZeroStage::none;
  REQUIRE(sent_all(p) == 2 * 4 * 8'030'261'248 / 64 * 63);
  p.runtime.megatron.grad_reduce_in_bf16 = true;
  REQUIRE(sent_all(p) == 2 * 2 * 8'030'261'248 / 64 * 63);
}

TEST_CASE("only what is divided is sent again for each micro-batch") {
  struct Case {
    Runtime runtime;
    ZeroStage zero;
    double ratio;  // sent with 4 micro-batches / with 1
  };
  const auto c = GENERATE(
      Case{Runtime::zero_paper, ZeroStage::parameters, 4},
      Case{Runtime::deepspeed, ZeroStage::none, 1},
      Case{Runtime::deepspeed, ZeroStage::optimizer, 1},
      Case{Runtime::deepspeed, ZeroStage::gradients, 5. / 2},
      Case{Runtime::deepspeed, ZeroStage::parameters, 4},
      Case{Runtime::fsdp2, ZeroStage::gradients, 4}, Case{Runtime::fsdp2, ZeroStage::parameters, 4},
      Case{Runtime::megatron, ZeroStage::none, 1}, Case{Runtime::megatron, ZeroStage::optimizer, 1},
      Case{Runtime::megatron, ZeroStage::parameters, 4},
      Case{Runtime::nanotron, ZeroStage::optimizer, 1}, Case{Runtime::ddp, ZeroStage::none, 1});
  const Problem p = problem(c.runtime, "llama3-8b", {.dp = 8, .zero = c.zero});
  REQUIRE(static_cast<double>(sent_all(accumulating(p, 4))) ==
          Approx(c.ratio * static_cast<double>(sent_all(p))));
}

TEST_CASE("FSDP2 gathers in 16 bits, twice unless kept, and reduces in 32") {
  Problem p = problem(Runtime::fsdp2, "llama3-8b", {.dp = 8, .zero = ZeroStage::gradients});
  // Every first dimension is a multiple of 8, so nothing is padded.
  const std::int64_t parameters = 8'030'261'248;
  const std::int64_t head = std::int64_t{128256} * 4096 + 4096;
  REQUIRE(sent_all(p) == (2 + 4) * parameters / 8 * 7);
  p.layout.zero = ZeroStage::parameters;
  REQUIRE(sent_all(p) == ((2 + 2 + 4) * parameters - 2 * head) / 8 * 7);

  SECTION("shards of the gradients are summed over the replicas of HSDP") {
    p = problem(Runtime::fsdp2, "llama3-8b", {.dp = 32, .hsdp = 8, .zero = ZeroStage::gradients});
    const auto loads = loads_of(p);
    REQUIRE(sent_in(loads, "shard") == (2 + 4) * parameters / 8 * 7);
    REQUIRE(sent_in(loads, "replica") == 2 * 4 * parameters / 8 / 4 * 3);
    REQUIRE(sent_in(loads, "dp") == 0);
  }
  SECTION("a pipeline gathers and reduces once a step") {
    p = problem(Runtime::fsdp2, "llama3-8b", {.dp = 8, .pp = 2, .zero = ZeroStage::parameters});
    REQUIRE(sent_in(loads_of(p), "dp") == sent_in(loads_of(accumulating(p, 8)), "dp"));
  }
}

TEST_CASE("tensor parallelism all-reduces four times a layer (Narayanan et al. 2021)") {
  Problem p = problem(Runtime::megatron, "gpt3-175b", {.tp = 8, .pp = 4, .micro_batch = 2});
  const std::int64_t bsh = std::int64_t{2} * 4096 * 12288;
  const std::int64_t runs = 24 * 4;  // layers of the second stage, micro-batches
  const auto layers = [](const Problem& q) {
    return sent(loads_of(q, 1), [](const CollectiveLoad& l) {
      return l.group.name == "tp" && l.during != During::step;
    });
  };
  // 8 b s h (t-1)/t elements.
  const std::int64_t plain = runs * 2 * 8 * bsh / 8 * 7;
  REQUIRE(layers(p) == plain);

  SECTION("half as much again with full recompute") {
    p.layout.recompute = Recompute::full;
    REQUIRE(layers(p) == plain * 3 / 2);
  }
  SECTION("sequence parallelism gathers the inputs of two linears once more") {
    p.layout.sequence_parallel = true;
    REQUIRE(layers(p) == plain + runs * 2 * 2 * bsh / 8 * 7);
  }
}

TEST_CASE("each chunk of a pipeline sends the residual on and its gradient back") {
  Problem p = problem(Runtime::megatron, "gpt3-175b", {.tp = 8, .pp = 4, .micro_batch = 2});
  const std::int64_t all = std::int64_t{4} * 2 * 2 * 4096 * 12288;  // micro-batches x 2 b s h bytes
  REQUIRE(sent_in(loads_of(p, 0), "pp") == all);
  REQUIRE(sent_in(loads_of(p, 1), "pp") == 2 * all);
  REQUIRE(sent_in(loads_of(p, 3), "pp") == all);

  SECTION("v times as often with v chunks a rank") {
    p.layout.vpp = 2;
    p.layout.schedule = Schedule::interleaved;
    REQUIRE(sent_in(loads_of(p, 0), "pp") == 3 * all);
    REQUIRE(sent_in(loads_of(p, 1), "pp") == 4 * all);
  }
  SECTION("each rank its rows under sequence parallelism") {
    p.layout.sequence_parallel = true;
    REQUIRE(sent_in(loads_of(p, 1), "pp") == 2 * all / 8);
  }
}

TEST_CASE("experts: four all-to-alls a layer and micro-batch of k copies of each token") {
  const Problem p = problem(Runtime::megatron, "mixtral-8x7b", {.dp = 8, .ep = 8});
  const std::int64_t copies = std::int64_t{4096} * 2;
  REQUIRE(sent_in(loads_of(p), "ep") == 32 * 4 * (2 * copies * 4096) / 8 * 7);
}

TEST_CASE("context parallelism moves keys and values, or heads") {
  Problem p = problem(Runtime::megatron, "llama3-70b", {.cp = 4});
  const std::int64_t keys_values = std::int64_t{2} * 2 * 1024 * 8 * 128;  // bytes of 1024 tokens
  // (c - 1) steps forward; backward the same and the gradients.
  REQUIRE(sent_in(loads_of(p), "cp") == 80 * 3 * 3 * keys_values);
  p.runtime.megatron.cp_comm_type = ContextTransport::all_gather;
  REQUIRE(sent_in(loads_of(p), "cp") == 80 * 3 * 3 * keys_values);
  p.runtime.megatron.cp_comm_type = ContextTransport::a2a;
  const std::int64_t output = std::int64_t{2} * 1024 * 8192;
  REQUIRE(sent_in(loads_of(p), "cp") == 80 * 2 * (keys_values + 2 * output) / 4 * 3);
}

TEST_CASE("a tied embedding on two stages is summed between them") {
  const Problem p = problem(Runtime::megatron, "gpt2-xl", {.dp = 2, .pp = 4});
  const auto is_tied = [](const CollectiveLoad& l) { return l.group.name == "embedding"; };
  for (const std::size_t stage : {0U, 3U}) {
    const auto loads = loads_of(p, stage);
    const auto tied = std::ranges::find_if(loads, is_tied);
    REQUIRE(tied != loads.end());
    REQUIRE(tied->group == RankGroup{"embedding", 2, 6});
    REQUIRE(tied->payload == Bytes{4 * 50304 * 1600});
  }
  REQUIRE(std::ranges::none_of(loads_of(p, 1), is_tied));
}

TEST_CASE("random legal layouts: every load is sent, in a group that the layout has") {
  std::mt19937 random(5);
  const auto pick = [&](std::initializer_list<std::int64_t> list) {
    return list.begin()[std::uniform_int_distribution<std::size_t>(0, list.size() - 1)(random)];
  };
  int legal = 0;
  for (int i = 0; i < 3000; ++i) {
    const Layout layout{.dp = pick({1, 2, 4, 8}),
                        .tp = pick({1, 2, 4}),
                        .pp = pick({1, 1, 2, 4}),
                        .cp = pick({1, 1, 2}),
                        .ep = pick({1, 1, 2, 4}),
                        .hsdp = pick({0, 0, 2}),
                        .micro_batch = pick({1, 2}),
                        .zero = static_cast<ZeroStage>(pick({0, 1, 2, 3})),
                        .sequence_parallel = pick({0, 1}) == 1,
                        .recompute = static_cast<Recompute>(pick({0, 1, 2}))};
    const char* model = pick({0, 1}) == 0 ? "llama3-8b" : "mixtral-8x7b";
    const Problem p = accumulating(
        problem(static_cast<Runtime>(pick({0, 1, 2, 3, 4, 5, 6})), model, layout), pick({1, 3}));
    if (first_violation(p)) continue;
    ++legal;
    const auto groups = rank_groups(p);
    const auto all_stages = stages(p);
    for (std::size_t stage = 0; stage < all_stages.size(); ++stage) {
      const auto loads = loads_of(p, stage);
      REQUIRE(loads.empty() == (world_size(layout) == 1));
      for (const CollectiveLoad& load : loads) {
        CAPTURE(i, load.group.name);
        REQUIRE(load.calls > 0);
        REQUIRE(sent_bytes_per_step(load) > Bytes{});
        REQUIRE(std::ranges::find(groups, load.group) != groups.end());
      }
    }
  }
  REQUIRE(legal > 100);
}

TEST_CASE("DeepSpeed's data parallelism never sends less with a higher stage") {
  for (const std::int64_t dp : {2, 8, 64}) {
    for (const std::int64_t m : {1, 2, 8}) {
      std::int64_t below = 0;
      for (const ZeroStage zero :
           {ZeroStage::none, ZeroStage::optimizer, ZeroStage::gradients, ZeroStage::parameters}) {
        const Problem p = problem(Runtime::deepspeed, "llama3-8b", {.dp = dp, .zero = zero});
        const std::int64_t now = sent_all(accumulating(p, m));
        CAPTURE(dp, m, static_cast<int>(zero));
        // Rounding of a bucket to whole parts is the only slack.
        REQUIRE(now >= below - 1000 * dp);
        below = now;
      }
    }
  }
}
