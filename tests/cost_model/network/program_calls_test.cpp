#include "cost_model/network/program_calls.hpp"

#include <algorithm>

#include "tests/catch.hpp"
#include "tests/cost_model/network/loads.hpp"

using namespace zeroplan;
using namespace zeroplan::tests;

namespace {

std::vector<Call> calls_of(const Problem& p, BlockKind block) {
  return code_of(p).block(p, weight_inventory(p.model), block, LayerKind::dense, 0).calls;
}

}  // namespace

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

TEST_CASE("each part of the loss sums its own softmax over tensor parallelism") {
  Problem p = problem(Runtime::fsdp2, "llama3-8b", {.tp = 4, .zero = ZeroStage::parameters});
  const auto sums = [&](std::int64_t parts) {
    p.runtime.fsdp2.loss_chunks = parts;
    std::pair<std::int64_t, std::int64_t> calls_and_bytes;
    for (const CollectiveLoad& load : loads_of(p, calls_of(p, BlockKind::head))) {
      if (load.collective != Collective::all_reduce || load.during != During::forward) continue;
      calls_and_bytes.first += load.calls;
      calls_and_bytes.second += load.calls * load.payload.count();
    }
    return calls_and_bytes;
  };
  REQUIRE(sums(1) == std::pair<std::int64_t, std::int64_t>{3, 3 * 4 * 4096});
  REQUIRE(sums(8) == std::pair<std::int64_t, std::int64_t>{3 * 8, 3 * 4 * 4096});
}

TEST_CASE("experts: four all-to-alls a layer and micro-batch of k copies of each token") {
  using enum Runtime;
  const Runtime runtime = GENERATE(megatron, fsdp2, deepspeed, zero_paper);
  Problem p = problem(runtime, "mixtral-8x7b", {.dp = 8, .ep = 8});
  if (runtime == fsdp2) p.layout.zero = ZeroStage::parameters;
  CAPTURE(name_of(runtime));
  const std::int64_t copies = std::int64_t{4096} * 2;
  REQUIRE(sent_in(loads_of(p), "ep") == 32 * 4 * (2 * copies * 4096) / 8 * 7);
}

// n (1 - (1 - 1/n)^k) places of n.
TEST_CASE("flex dispatch sends a token once to each rank, and over the network once to each node") {
  Problem p = problem(Runtime::megatron, "mixtral-8x7b", {.dp = 8, .ep = 8}, "H100-80GB");
  p.runtime.megatron.moe_token_dispatcher_type = TokenDispatcher::flex;
  const std::int64_t calls = std::int64_t{32} * 4;
  const auto payload = [](double copies) {
    return static_cast<std::int64_t>(2 * 4096 * 4096 * copies);
  };
  // 8 (1 - (7/8)^2) = 1.875 of 8 ranks.
  CHECK(sent_in(loads_of(p), "ep") == calls * payload(1.875) / 8 * 7);

  p = problem(Runtime::megatron, "deepseek-v3", {.dp = 16, .ep = 16}, "H100-80GB");
  p.runtime.megatron.moe_token_dispatcher_type = TokenDispatcher::flex;
  std::int64_t over_network = 0, in_nodes = 0;
  for (const CollectiveLoad& load : loads_of(p)) {
    if (load.group.name != "ep") continue;
    (load.group.stride == 8 ? over_network : in_nodes) += load.payload.count();
    CHECK(load.group.ranks == (load.group.stride == 8 ? 2 : 8));
  }
  const double token = 2.0 * 7168 * 4096;
  // 2 (1 - (1/2)^8) = 1.9922 nodes, and of the 8 ranks that hold 4 of 8 groups of experts
  // 8 (1 - (7/8)^8) = 5.2512, forward and backward.
  CHECK(static_cast<double>(over_network) == Approx(2 * token * 1.9922).epsilon(1e-4));
  CHECK(static_cast<double>(in_nodes) == Approx(2 * token * 5.2512).epsilon(1e-4));
}

TEST_CASE(
    "HybridEP gathers who goes where, and sends probabilities of a node's experts once a way") {
  Problem p = problem(Runtime::megatron, "deepseek-v3", {.dp = 16, .ep = 16}, "H100-80GB");
  p.runtime.megatron.moe_token_dispatcher_type = TokenDispatcher::flex;
  const auto carried = [&](FlexBackend backend, Collective collective, std::int64_t stride) {
    p.runtime.megatron.moe_flex_dispatcher_backend = backend;
    Bytes sum;
    for (const CollectiveLoad& load : loads_of(p)) {
      const bool counts = load.group.name == "ep" && load.collective == collective &&
                          (stride == 0 || load.group.stride == stride);
      if (counts) sum += load.calls * load.payload;
    }
    return sum;
  };
  constexpr std::int64_t layers = 58;
  using enum FlexBackend;
  CHECK(carried(deepep, Collective::all_gather, 0) == Bytes{});
  CHECK(carried(hybridep, Collective::all_gather, 0) == Bytes{layers * 16 * 4096 * 256});
  // 128 experts a node, in fp32, beside each copy: forward on the way out, backward on that back.
  const auto beside = [](double places) {
    return static_cast<double>(2 * layers * 4096 * 4 * 128) * places;
  };
  const auto more = [&](std::int64_t stride) {
    const auto of = [&](FlexBackend b) {
      return static_cast<double>(carried(b, Collective::all_to_all, stride).count());
    };
    return of(hybridep) - of(deepep);
  };
  CHECK(more(8) == Approx(beside(1.9922)).epsilon(1e-4));
  CHECK(more(1) == Approx(beside(5.2512)).epsilon(1e-4));
}

TEST_CASE("quantized inputs of linears are gathered as they are multiplied, outputs in 16 bits") {
  Problem p =
      problem(Runtime::megatron, "llama3-70b", {.tp = 4, .sequence_parallel = true}, "B200");
  const auto bytes = [&](Collective what, Precision precision) {
    p.training.precision = precision;
    std::int64_t sum = 0;
    for (const CollectiveLoad& l : loads_of(p, calls_of(p, BlockKind::layer))) {
      if (l.collective == what) sum += l.calls * l.payload.count();
    }
    return sum;
  };
  const std::int64_t tensor = std::int64_t{4096} * 8192;
  CHECK(bytes(Collective::all_gather, Precision::bf16) == 6 * 2 * tensor);
  CHECK(bytes(Collective::all_gather, Precision::fp8) == 6 * tensor);
  CHECK(bytes(Collective::all_gather, Precision::nvfp4) == 6 * tensor * 9 / 16);
  CHECK(bytes(Collective::reduce_scatter, Precision::fp8) == 4 * 2 * tensor);
}

TEST_CASE("an expert layer that runs again dispatches again") {
  Problem p = problem(Runtime::megatron, "mixtral-8x7b",
                      {.dp = 8, .ep = 8, .recompute = Recompute::selective});
  const std::int64_t once = sent_in(loads_of(p), "ep");
  p.runtime.megatron.recompute_modules = 1U << static_cast<unsigned>(RecomputeModule::moe);
  REQUIRE(sent_in(loads_of(p), "ep") == once * 3 / 2);
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

// PyTorch torch/distributed/tensor/experimental/_context_parallel/_attention.py: FlexCPAllGather,
// and the ring before torchtitan's models ran flex attention.
TEST_CASE("context parallelism of flex attention gathers keys and scatters their gradients") {
  Problem p = problem(Runtime::fsdp2, "llama3-70b", {.cp = 4, .zero = ZeroStage::parameters});
  const std::int64_t keys_values = std::int64_t{2} * 2 * 1024 * 8 * 128;
  REQUIRE(sent_in(loads_of(p), "cp") == 80 * (3 + 3) * keys_values);
  p.runtime.fsdp2.recipe_date = 20260220;
  REQUIRE(sent_in(loads_of(p), "cp") == 80 * (2 * 3 + 4 * 2) * keys_values);  // gradients in fp32
}

// torchtitan models/llama4/infra/parallelize.py apply_moe_ep_tp, the plan of "moe": all-gather for
// the input, reduce-scatter for the output.
TEST_CASE("torchtitan gathers and scatters around experts that share nothing too") {
  const Problem p = problem(Runtime::fsdp2, "mixtral-8x7b",
                            {.tp = 4, .zero = ZeroStage::parameters, .sequence_parallel = true});
  std::int64_t gathers = 0;
  for (const CollectiveLoad& load : loads_of(p)) {
    if (load.group.name == "tp" && load.collective == Collective::all_gather &&
        load.during == During::forward) {
      gathers += load.calls;
    }
  }
  REQUIRE(gathers == 2 * 32 + 1);  // of the head one
}

TEST_CASE("ranks that divide an expert gather its tokens and scatter the sums") {
  const Problem p = problem(Runtime::megatron, "mixtral-8x7b",
                            {.dp = 4, .tp = 2, .ep = 4, .etp = 2, .sequence_parallel = true});
  const std::int64_t routed = std::int64_t{2} * (4096 / 2) * 2 * 4096;  // bytes of 2 copies a token
  const auto loads = loads_of(p);
  REQUIRE(sent_in(loads, "ep") == 32 * 4 * routed / 4 * 3);
  REQUIRE(sent_in(loads, "etp") == 32 * 4 * routed);
}

TEST_CASE("latent attention gathers latents, not the residual") {
  const Problem p = problem(Runtime::megatron, "deepseek-v3",
                            {.dp = 8, .tp = 2, .pp = 61, .ep = 16, .sequence_parallel = true});
  std::vector<std::int64_t> widths;
  for (const CollectiveLoad& load : loads_of(p, 30)) {  // a stage of one MoE layer
    if (load.collective == Collective::all_gather && load.group.name == "tp" &&
        load.during == During::forward) {
      widths.push_back(load.payload.count() / 2 / 4096);
    }
  }
  // The rotary part of the keys, queries' latent, keys' and values', then the shared expert's
  // input.
  REQUIRE(widths == std::vector<std::int64_t>{64, 1536, 512, 7168});
}

TEST_CASE("torchtitan without loss_parallel gathers the logits") {
  Problem p = problem(Runtime::fsdp2, "llama3-8b",
                      {.tp = 8, .zero = ZeroStage::parameters, .sequence_parallel = true});
  p.runtime.fsdp2.loss_chunks = 1;
  const Bytes logits{std::int64_t{2} * 4096 * 128256};
  const auto gathers_logits = [&] {
    return std::ranges::any_of(loads_of(p),
                               [&](const CollectiveLoad& l) { return l.payload == logits; });
  };
  REQUIRE_FALSE(gathers_logits());
  SECTION("as it is told") {
    p.runtime.fsdp2.loss_parallel = false;
  }
  SECTION("as Hugging Face's layers do") {
    p.runtime.fsdp2.layers = LayerCode::huggingface;
  }
  REQUIRE(gathers_logits());
}

TEST_CASE("a checkpoint that DeepSpeed divides is gathered before its layer runs again") {
  Problem p = problem(Runtime::deepspeed, "gpt3-175b", {.tp = 8, .recompute = Recompute::full});
  const std::int64_t whole = sent_in(loads_of(p, 0), "tp");
  p.runtime.deepspeed.partition_activations = true;
  // One all-gather of 2 s h bytes a layer.
  REQUIRE(sent_in(loads_of(p, 0), "tp") - whole == std::int64_t{96} * 2 * 4096 * 12288 / 8 * 7);
}

TEST_CASE("a multi-token-prediction module sends what a layer, a projection and the ends send") {
  Problem p = problem(Runtime::megatron, "llama3-8b", {.tp = 8});
  const std::int64_t tokens = 4096;
  const std::int64_t residual = 2 * tokens * 4096;
  const std::int64_t whole = sent_in(loads_of(p), "tp");
  p.runtime.megatron.mtp_num_layers = 2;

  SECTION("all-reduces") {
    // Of a layer four, of the embedding one, of the head one, of the projection's two inputs two;
    // its output is gathered; and three sums of the loss.
    const std::int64_t module = (2 * 8 + 1) * residual + 2 * 3 * 4 * tokens;
    REQUIRE(sent_in(loads_of(p), "tp") - whole == 2 * module / 8 * 7);
  }
  SECTION("sequence parallelism gathers and scatters") {
    p.layout.sequence_parallel = true;
    Problem without = p;
    without.runtime.megatron.mtp_num_layers = 0;
    // Of a layer ten; of the embedding two, of the head three; of the projection's inputs three
    // times two; its output.
    const std::int64_t module = (10 + 2 + 3 + 6 + 1) * residual + 2 * 3 * 4 * tokens;
    REQUIRE(sent_in(loads_of(p), "tp") - sent_in(loads_of(without), "tp") ==
            Approx(2 * module / 8 * 7).epsilon(1e-3));
  }
}
