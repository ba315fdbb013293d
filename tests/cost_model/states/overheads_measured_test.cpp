#include "cost_model/states/overheads.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;

// Eight gather and four scatter 4,096 tokens of 4,096 features.
TEST_CASE("user buffers are twelve hidden states, those that gather in the format of products") {
  Problem p = tests::problem(Runtime::megatron, "llama3-8b", {.tp = 4, .sequence_parallel = true});
  REQUIRE(user_buffer_bytes(p) == Bytes{});
  p.runtime.megatron.tp_comm_overlap = true;
  const Bytes one{std::int64_t{4096} * 4096};
  CHECK(user_buffer_bytes(p) == 12 * 2 * one);
  p.layout.micro_batch = 2;
  CHECK(user_buffer_bytes(p) == 2 * 12 * 2 * one);
  p.training.precision = Precision::fp8;
  CHECK(user_buffer_bytes(p) == 2 * (8 + 4 * 2) * one);
}

TEST_CASE("what a probe measured stands before every estimate") {
  Problem p = tests::problem(Runtime::megatron, "llama3-8b", {.dp = 4, .tp = 2, .pp = 2});
  p.cluster.gpus = 16;
  p.cluster.gpus_per_node = 8;
  const Bytes context = context_bytes(p);
  const std::vector<ProcessGroup> groups = process_groups(p);
  REQUIRE(groups.size() == 3);  // tp, dp inside a node; pp over the network
  std::vector<Bytes> estimates;
  for (const ProcessGroup& group : groups) estimates.push_back(communicator_bytes(p, group));

  p.cluster.overheads = {.context = 700_MiB, .communicators = {{1, 2_MiB}, {2, 301_MiB}}};
  CHECK(context_bytes(p) == 700_MiB);
  CHECK(communicator_bytes(p, groups[0]) == 301_MiB);  // tp 2
  CHECK(is_measured(p, groups[0]));
  CHECK(communicator_bytes(p, groups[1]) == estimates[1]);  // nobody measured 4 ranks
  CHECK(communicator_bytes(p, groups[2]) == estimates[2]);  // nor what messages take
  CHECK(communicator_bytes(p) == 301_MiB + estimates[1] + estimates[2]);
  p.cluster.overheads.context = {};
  CHECK(context_bytes(p) == context);
  p.runtime.kind = Runtime::zero_paper;
  CHECK(communicator_bytes(p) == Bytes{});
}

// Qwen3-30B-A3B: 2,048 values, 128 experts. HybridEP has room for what all eight ranks could send.
TEST_CASE("the flex dispatcher's library has buffers of its own instead of NCCL's to each peer") {
  Problem p =
      tests::problem(Runtime::megatron, "qwen3-30b-a3b",
                     {.dp = 8, .ep = 8, .micro_batch = 2, .zero = ZeroStage::optimizer}, "H100");
  CHECK(dispatch_buffer_bytes(p) == Bytes{});
  const auto of_experts = [&] {
    for (const ProcessGroup& group : process_groups(p)) {
      if (group.name == "ep") return communicator_bytes(p, group);
    }
    return Bytes{};
  };
  CHECK(of_experts() > 2_GiB);
  p.runtime.megatron.moe_token_dispatcher_type = TokenDispatcher::flex;
  CHECK(of_experts() < 10_MiB);
  CHECK(dispatch_buffer_bytes(p) == Bytes{10 * 8 * 256 * 2 * 2048});
  p.runtime.megatron.moe_flex_dispatcher_backend = FlexBackend::hybridep;
  const std::int64_t tokens = 2 * p.training.sequence_length * 8;
  CHECK(dispatch_buffer_bytes(p) == Bytes{tokens * (2 * 2048 + 4 * 128 + 4 * 2048 / 128)});
  p.model.moe->latent_size = 1024;
  CHECK(dispatch_buffer_bytes(p) == Bytes{tokens * (2 * 1024 + 4 * 128 + 4 * 1024 / 128)});
}
