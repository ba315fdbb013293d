#include "cost_model/memory/activations.hpp"

#include "cost_model/program/schedule.hpp"
#include "tests/catch.hpp"
#include "tests/specs.hpp"

using namespace zeroplan;
using tests::problem;

namespace {

std::int64_t bytes_a_token(const Problem& p) {
  return layer_activations(p, LayerKind::dense).count() / local_tokens(p);
}

}  // namespace

// Sums of the tensors each runtime's modules save, bytes a token and layer, worked by hand.
TEST_CASE("a layer's activations are its saved tensors") {
  // 2 x (2 x 2h + 4) norms, 4 n d + 4 n_kv d + 4 n attention, 8 f eager MLP: 32776 + 20608 +
  // 114688.
  REQUIRE(bytes_a_token(problem(Runtime::fsdp2, "llama3-8b", {})) == 168'072);
  // Eager RMSNorm keeps fp32 copies too: 16 h + 8.
  REQUIRE(bytes_a_token(problem(Runtime::zeroplan, "llama3-8b", {})) == 200'840);
  // 12 h elements of two bytes.
  REQUIRE(bytes_a_token(problem(Runtime::zero_paper, "llama3-8b", {})) == 24 * 4096);
}

TEST_CASE("tensor parallelism divides the norm regions only with sequence parallelism") {
  REQUIRE(bytes_a_token(problem(Runtime::fsdp2, "llama3-8b",
                                {.tp = 8, .sequence_parallel = true})) == 168'072 / 8);
  REQUIRE(bytes_a_token(problem(Runtime::fsdp2, "llama3-8b", {.tp = 8})) ==
          32'776 + (20'608 + 114'688) / 8);
}

TEST_CASE("torchtitan's selective recompute keeps every second matmul") {
  REQUIRE(bytes_a_token(
              problem(Runtime::fsdp2, "llama3-8b", {.recompute = Recompute::selective})) == 63'616);
}

TEST_CASE("unfused attention keeps the scores") {
  Problem p = problem(Runtime::fsdp2, "llama3-8b", {});
  p.training.attention = AttentionKernel::unfused;
  // 2 bytes a head and key instead of the 4-byte log-sum-exp a head.
  REQUIRE(bytes_a_token(p) == 168'072 - 4 * 32 + 2 * 32 * 4096);
}

// Megatron-Core core/pipeline_parallel/schedules.py, rank 0 with many micro-batches, in layers of
// the model: L (1 + (p-1)/(p v)).
TEST_CASE("micro-batches in flight follow the schedule") {
  const auto in_flight = [](Runtime runtime, Layout layout, std::int64_t batch, std::int64_t rank) {
    Problem p = problem(runtime, "gpt3-175b", layout);
    p.training.sequence_length = 2048;
    p.training.global_batch = batch;
    return chunks_in_flight(p, rank);
  };
  const Layout plain{.pp = 8};
  REQUIRE(in_flight(Runtime::megatron, plain, 64, 0) == 8);
  REQUIRE(in_flight(Runtime::megatron, plain, 64, 7) == 1);
  REQUIRE(in_flight(Runtime::megatron, plain, 3, 0) == 3);
  REQUIRE(in_flight(Runtime::fsdp2, {.pp = 8, .schedule = Schedule::gpipe}, 64, 0) == 64);
  REQUIRE(in_flight(Runtime::megatron, {.pp = 8, .vpp = 2, .schedule = Schedule::interleaved}, 64,
                    0) == 23);
  REQUIRE(in_flight(Runtime::megatron, {.pp = 8, .vpp = 4, .schedule = Schedule::interleaved}, 64,
                    0) == 39);
  REQUIRE(in_flight(Runtime::megatron, {.pp = 8, .vpp = 4, .schedule = Schedule::interleaved}, 64,
                    1) == 37);
  REQUIRE(in_flight(Runtime::zero_paper, {.pp = 8, .schedule = Schedule::zb_h1}, 64, 7) == 8);
  REQUIRE(in_flight(Runtime::zero_paper, {.pp = 8, .schedule = Schedule::zb_h2}, 64, 0) == 15);
  REQUIRE(in_flight(Runtime::zero_paper, {.pp = 8, .schedule = Schedule::dualpipe}, 64, 0) == 9);
}

TEST_CASE("the loss holds fourteen bytes a logit in Hugging Face code, twelve in torchtitan") {
  const std::int64_t logits = 4096LL * 128'256;
  const std::int64_t norm = 2 * 2 * 4096 * 4096;
  REQUIRE(loss_memory(problem(Runtime::zeroplan, "llama3-8b", {})).peak.count() ==
          14 * logits + norm);
  Problem p = problem(Runtime::fsdp2, "llama3-8b", {});
  REQUIRE(loss_memory(p).peak.count() == 12 * logits + norm);
}
