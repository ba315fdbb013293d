#include "cost_model/runtime/replica_calls.hpp"

#include "cost_model/runtime/fsdp2/rank.hpp"
#include "cost_model/runtime/megatron/fsdp_buckets.hpp"
#include "tests/catch.hpp"
#include "tests/cost_model/network/loads.hpp"

using namespace zeroplan;
using namespace zeroplan::tests;

namespace {

// DeepSpeed keeps no parameter from one pass to the next, nor gathers ahead.
Problem gathering_all(Problem p) {
  p.runtime.deepspeed.stage3_max_reuse_distance = 0;
  p.runtime.deepspeed.stage3_max_live_parameters = 0;
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
    const Problem p = gathering_all(problem(runtime, "llama3-8b", {.dp = 64, .zero = zero}));
    const std::int64_t elements = sent_all(p) / 2;
    if (runtime == Runtime::zero_paper) REQUIRE(elements == psi * parameters / 64 * 63);
    // The others pad parts: by up to N elements a call, zeroplan by up to 256 N a unit. DeepSpeed
    // gathers small parameters once a step.
    REQUIRE(static_cast<double>(elements) ==
            Approx(static_cast<double>(psi * parameters) * 63 / 64)
                .epsilon(runtime == Runtime::zeroplan ? 1e-4 : 2e-5));
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

TEST_CASE("nanotron sums whole gradients under ZeRO 1 too, then gathers 16-bit parameters") {
  Problem p = problem(Runtime::nanotron, "llama3-8b", {.dp = 8, .zero = ZeroStage::none});
  const std::int64_t parameters = 8'030'261'248;
  REQUIRE(static_cast<double>(sent_all(p)) ==
          Approx(2. * 4 * static_cast<double>(parameters) / 8 * 7).epsilon(1e-6));
  const std::int64_t calls = loads_of(p).front().calls;
  REQUIRE(calls == (parameters + 13'107'199) / 13'107'200);  // 25 MiB of 16-bit parameters
  p.layout.zero = ZeroStage::optimizer;
  REQUIRE(sent_all(p) == (2 * 4 + 2) * parameters / 8 * 7);
  REQUIRE(loads_of(p).front().calls == 1);
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
      Case{Runtime::nanotron, ZeroStage::optimizer, 1}, Case{Runtime::ddp, ZeroStage::none, 1});
  const Problem p = problem(c.runtime, "llama3-8b", {.dp = 8, .zero = c.zero});
  REQUIRE(static_cast<double>(sent_all(accumulating(p, 4))) ==
          Approx(c.ratio * static_cast<double>(sent_all(p))));
}

TEST_CASE("Megatron-FSDP gathers all but embedding and head again for each micro-batch") {
  const Problem p =
      problem(Runtime::megatron, "llama3-8b", {.dp = 8, .zero = ZeroStage::parameters});
  const Bytes ends = fsdp_gathered_ends(p, weight_inventory(p.model), stages(p).front());
  REQUIRE(ends > Bytes{});
  REQUIRE(sent_all(accumulating(p, 4)) == 4 * sent_all(p) - 3 * ends.count() / 8 * 7);
}

TEST_CASE("FSDP2 gathers in 16 bits, twice unless kept, and reduces in 32") {
  Problem p = problem(Runtime::fsdp2, "llama3-8b", {.dp = 8, .zero = ZeroStage::gradients});
  p.runtime.fsdp2.loss_chunks = 1;
  // Every first dimension is a multiple of 8, so nothing is padded.
  const std::int64_t parameters = 8'030'261'248;
  const std::int64_t head = std::int64_t{128256} * 4096 + 4096;
  REQUIRE(sent_all(p) == (2 + 4) * parameters / 8 * 7);
  p.layout.zero = ZeroStage::parameters;
  REQUIRE(sent_all(p) == ((2 + 2 + 4) * parameters - 2 * head) / 8 * 7);

  SECTION("shards of the gradients are summed over the replicas of HSDP") {
    p = problem(Runtime::fsdp2, "llama3-8b", {.dp = 32, .hsdp = 8, .zero = ZeroStage::gradients});
    p.runtime.fsdp2.loss_chunks = 1;
    const auto loads = loads_of(p);
    REQUIRE(sent_in(loads, "shard") == (2 + 4) * parameters / 8 * 7);
    REQUIRE(sent_in(loads, "replica") == 2 * 4 * parameters / 8 / 4 * 3);
    REQUIRE(sent_in(loads, "dp") == 0);
  }
  SECTION("a pipeline gathers and reduces once a step") {
    p = problem(Runtime::fsdp2, "llama3-8b", {.dp = 8, .pp = 2, .zero = ZeroStage::parameters});
    p.runtime.fsdp2.loss_chunks = 1;
    for (const std::size_t stage : {0, 1}) {
      REQUIRE(sent_in(loads_of(p, stage), "dp") ==
              sent_in(loads_of(accumulating(p, 8), stage), "dp"));
    }
  }
}

// The output layer's unit: its weight and the final norm.
TEST_CASE("a loss in parts reshards the output layer, which it and both passes each gather") {
  const std::int64_t head = std::int64_t{128256} * 4096 + 4096;
  const auto more = [](Problem p) {  // bytes than with a whole loss, of the last stage
    const auto last = static_cast<std::size_t>(p.layout.pp - 1);
    p.runtime.fsdp2.loss_chunks = 1;
    const std::int64_t whole = sent_in(loads_of(p, last), "dp");
    p.runtime.fsdp2.loss_chunks = 8;
    return sent_in(loads_of(p, last), "dp") - whole;
  };
  Problem p = problem(Runtime::fsdp2, "llama3-8b", {.dp = 8, .zero = ZeroStage::gradients});
  REQUIRE(more(p) == 2 * 2 * head / 8 * 7);
  p.layout.zero = ZeroStage::parameters;
  REQUIRE(more(p) == 2 * 2 * head / 8 * 7);
  // Whole, that is gathered twice.
  p.runtime.fsdp2.reshard_after_forward = Reshard::always;
  REQUIRE(more(p) == 2 * head / 8 * 7);
  REQUIRE(more(accumulating(p, 4)) == 4 * 2 * head / 8 * 7);

  SECTION("a pipeline gathers it twice, and reduces all but the norm, each micro-batch") {
    p = problem(Runtime::fsdp2, "llama3-8b", {.dp = 8, .pp = 2, .zero = ZeroStage::parameters});
    p = accumulating(p, 8);
    const std::int64_t m = micro_batches(p);
    REQUIRE(m == 16);
    REQUIRE(more(p) == (m * 2 * 2 * head + (m - 1) * 4 * (head - 4096)) / 8 * 7);
  }
  SECTION("a tied one is reduced again as the embedding") {
    p = problem(Runtime::fsdp2, "llama3.2-1b", {.dp = 8, .zero = ZeroStage::parameters});
    const std::int64_t words = std::int64_t{128256} * 2048;
    REQUIRE(more(p) == (2 * 2 * (words + 2048) + 4 * words) / 8 * 7);
  }
}

// What a step gathers more than once each is what memory does not hold from forward to backward.
TEST_CASE("traffic and memory of FSDP2 know the same units") {
  const auto [layers, date, model] = GENERATE(table<std::string, std::string, std::string_view>(
      {{"torchtitan", "2025-02-06", "llama3-8b"},
       {"torchtitan", "2025-09-17", "llama3-8b"},
       {"torchtitan", "2025-09-17", "gemma2-9b"},
       {"huggingface", "2025-02-06", "llama3-8b"},
       {"huggingface", "2025-09-17", "llama3-8b"},
       {"huggingface", "2025-09-17", "gemma2-9b"}}));
  const std::string reshard = GENERATE("default", "always");
  Problem p = problem(Runtime::fsdp2, model, {.dp = 8, .zero = ZeroStage::parameters});
  std::vector<Override> set{{"layers", layers}, {"recipe_date", date}};
  if (layers == "torchtitan") {
    set.emplace_back("parallelism.fsdp_reshard_after_forward", reshard);
  } else if (reshard == "always") {  // the root's parameters too
    set.emplace_back("accelerate_version", "1.13");
  }
  p.runtime = load_runtime(Runtime::fsdp2, set);
  CAPTURE(layers, date, model, reshard);
  const WeightInventory inventory = weight_inventory(p.model);
  const Fsdp2Units units = fsdp2_units(p, inventory);
  const Fsdp2Rank rank(p, inventory, units);
  Bytes forward, backward;
  std::int64_t gathers = 0;
  const auto add = [&](const Fsdp2Unit& unit, std::int64_t count, bool kept) {
    forward += count * unit.gathered;
    gathers += count;
    if (!kept) backward += count * unit.gathered;
    if (!kept) gathers += count;
  };
  bool root = false;
  bool root_kept = false;
  for (const Fsdp2Link& link : rank.links({0, p.model.layers}, true, true)) {
    root |= link.unit == nullptr;
    if (link.unit == nullptr) root_kept = link.kept;  // as the head's says, which is the last
    if (link.unit != nullptr) add(*link.unit, link.count, link.kept);
  }
  if (root) add(units.ends, 1, root_kept);
  const auto sum_of = [&](During during) {
    Bytes bytes;
    for (const CollectiveLoad& load : loads_of(p)) {
      if (load.collective != Collective::all_gather || load.during != during) continue;
      bytes += load.calls * load.payload;
      gathers -= load.calls;
    }
    return bytes;
  };
  CHECK(sum_of(During::forward) == forward);
  CHECK(sum_of(During::backward) == backward);
  CHECK(gathers == 0);
}

TEST_CASE("FSDP2 gathers in 8 bits only where it trains in fp8") {
  Problem p = problem(Runtime::fsdp2, "llama3-8b", {.dp = 8, .zero = ZeroStage::parameters});
  const WeightInventory inventory = weight_inventory(p.model);
  const auto in_memory = [&] { return fsdp2_units(p, inventory).layer(LayerKind::dense).gathered; };
  const std::int64_t wide_sent = sent_all(p);
  const Bytes wide = in_memory();
  p.runtime.fsdp2.float8_all_gather = true;
  REQUIRE(sent_all(p) == wide_sent);
  REQUIRE(in_memory() == wide);
  p.training.precision = Precision::fp8;
  const std::int64_t matrices = 6'979'321'856;
  REQUIRE(sent_all(p) == wide_sent - 2 * matrices / 8 * 7);
  REQUIRE(in_memory() == wide - Bytes{matrices / 32});
}

TEST_CASE("DeepSpeed gathers what it let go of, and small parameters once they are updated") {
  const auto gathered = [](const Problem& p, During during) {
    std::int64_t calls = 0, elements = 0;
    for (const CollectiveLoad& load : loads_of(p)) {
      if (load.collective != Collective::all_gather || load.during != during) continue;
      calls += load.calls;
      elements += load.calls * load.payload.count() / 2;
    }
    return std::pair{calls, elements};
  };
  Problem p = problem(Runtime::deepspeed, "llama3-8b", {.dp = 8, .zero = ZeroStage::parameters});
  const std::int64_t norms = 2 * 32 + 1, psi = 8'030'261'248;
  CHECK(gathered(p, During::step) == std::pair{norms, norms * 4096});
  const std::int64_t again = gathered(p, During::backward).second;
  CHECK(again > psi / 2);
  CHECK(again < psi);
  p.runtime.deepspeed.stage3_max_reuse_distance = 100 * psi;  // all stays
  CHECK(gathered(p, During::backward).first == 0);
  // One call a tensor.
  CHECK(gathered(gathering_all(p), During::backward).first == 7 * 32 + 2);
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
TEST_CASE("other forms of DeepSpeed's data parallelism") {
  const std::int64_t psi = 8'030'261'248;
  const auto near = [](std::int64_t value) {
    return Approx(static_cast<double>(value)).epsilon(5e-5);
  };
  const auto bytes_in = [](const Problem& q, std::string_view group) {
    return static_cast<double>(sent_in(loads_of(q), group));
  };
  Problem p = gathering_all(
      problem(Runtime::deepspeed, "llama3-8b", {.dp = 64, .zero = ZeroStage::parameters}));

  SECTION("ZeRO++ gathers for the backward pass inside a node") {
    p.runtime.deepspeed.hpz_partition_size = 8;
    REQUIRE(bytes_in(p, "dp") == near(2 * 2 * psi / 64 * 63));
    REQUIRE(bytes_in(p, "secondary") == near(2 * psi / 8 * 7));
    p.runtime.deepspeed.hpz_partition_size = 128;  // more than there are
    REQUIRE(bytes_in(p, "secondary") == near(2 * psi / 64 * 63));
  }
  SECTION("ZeRO++ gathers 8 bits") {
    p.runtime.deepspeed.quantized_weights = true;
    REQUIRE(bytes_in(p, "dp") == near((2 + 1 + 1) * psi / 64 * 63));
  }
  SECTION("ZeRO++ reduces 4 bits inside nodes, then the nodes' sums between them") {
    p.runtime.deepspeed.quantized_gradients = true;
    const auto reduced = static_cast<double>(sent(loads_of(p), [](const CollectiveLoad& l) {
      return l.collective == Collective::all_to_all;
    }));
    const std::int64_t nodes = 64 / p.cluster.gpus_per_node;
    REQUIRE(p.cluster.gpus_per_node == 8);
    REQUIRE(reduced == near(psi / 2 / 8 * 7 + psi / 2 / 8 / nodes * (nodes - 1)));
    REQUIRE(bytes_in(p, "dp") - reduced == near(2 * 2 * psi / 64 * 63));
  }
  SECTION("ZeRO++ reduces 16 bits where there is one node") {
    p = gathering_all(
        problem(Runtime::deepspeed, "llama3-8b", {.dp = 8, .zero = ZeroStage::parameters}));
    p.runtime.deepspeed.quantized_gradients = true;
    REQUIRE(bytes_in(p, "dp") == near(3 * 2 * psi / 8 * 7));
  }
  SECTION("MiCS sums over replicas once a step") {
    p.layout.hsdp = 8;
    p = accumulating(p, 4);
    REQUIRE(bytes_in(p, "shard") == near(4 * 3 * 2 * psi / 8 * 7));
    REQUIRE(bytes_in(p, "replica") == near(2 * 2 * psi / 8 / 8 * 7));
  }
  SECTION("fp32 accumulation sums whole gradients at stage 1") {
    p.layout.zero = ZeroStage::optimizer;
    p.runtime.deepspeed.fp32_grad_accumulation = true;
    REQUIRE(bytes_in(p, "dp") == near(3 * 2 * psi / 64 * 63));
  }
  SECTION("buckets have the size asked for") {
    p.layout.zero = ZeroStage::optimizer;
    for (const CollectiveLoad& load : loads_of(p)) {
      if (load.collective != Collective::reduce_scatter) continue;
      REQUIRE(load.calls == 17);  // 8.03e9 / 5e8
      REQUIRE(load.payload <= Bytes{2 * p.runtime.deepspeed.reduce_bucket_size});
    }
  }
}

TEST_CASE("DDP all-reduces fp32 gradients in buckets of 25 MiB") {
  const auto loads = loads_of(problem(Runtime::ddp, "llama3.2-1b", {.dp = 8}));
  REQUIRE(loads.size() == 1);
  REQUIRE(loads[0].collective == Collective::all_reduce);
  REQUIRE(loads[0].calls == ceil_div(4 * std::int64_t{1'235'814'400}, 25 * mebi));
  REQUIRE(loads[0].payload <= 25_MiB);
}

TEST_CASE("experts are summed over the ranks that hold the same ones") {
  const Problem p = problem(Runtime::megatron, "mixtral-8x7b", {.dp = 8, .ep = 4});
  const std::int64_t experts = std::int64_t{32} * 8 * 3 * 4096 * 14336;
  const auto loads = loads_of(p);
  REQUIRE(sent_in(loads, "expert-dp") == 2 * 4 * (experts / 4) / 2);
  REQUIRE(sent_in(loads, "dp") == 2 * 4 * (46'702'792'704 - experts) / 8 * 7);
}
