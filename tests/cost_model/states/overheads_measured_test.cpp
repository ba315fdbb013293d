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
